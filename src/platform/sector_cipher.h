#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace millrace {

// A secret of 256 bits. Wiped from memory when it goes.
class SecretKey {
 public:
  static constexpr std::size_t kBytes = 32;

  // 64 hexadecimal digits, white space around them is ignored. The message of a failure holds none
  // of the text.
  static Result<SecretKey> parse(std::string_view text);
  // A file with 64 hexadecimal digits or 32 raw bytes, which nobody but its owner may read:
  // kPermissionDenied otherwise.
  static Result<SecretKey> load(const std::string& path);

  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey();

  ByteView bytes() const { return bytes_; }

 private:
  explicit SecretKey(ByteView bytes);
  std::array<std::byte, kBytes> bytes_{};
};

// Encrypts what lies on a disk with AES-256-XTS, sector by sector: any sector can be read alone,
// and nothing grows. It hides content from whoever has the disk without the key; it does not keep
// him from changing it, which is for checksums to notice.
//
// The same bytes at the same place of the same thing give the same ciphertext, so that places must
// never be written twice with different content: it is for immutable things. All methods are safe
// from any thread, and do not block.
class SectorCipher {
 public:
  static constexpr std::size_t kSectorBytes = 4096;
  // What the bytes belong to; as good as random, so that no two things share a (name, sector).
  using Name = std::array<std::byte, 16>;

  // kUnsupported when this OpenSSL has no AES-256-XTS.
  static Result<std::unique_ptr<SectorCipher>> make(const SecretKey& key);
  ~SectorCipher();
  SectorCipher(const SectorCipher&) = delete;
  SectorCipher& operator=(const SectorCipher&) = delete;

  // `offset` is a multiple of a sector; so is the length, unless the thing ends there. `into` is as
  // long as `from`, and may be the same memory.
  Status encrypt(const Name& name, std::uint64_t offset, ByteView from, MutableByteView into);
  Status decrypt(const Name& name, std::uint64_t offset, ByteView from, MutableByteView into);

  // Tells one key from another, and nothing else about it: 32 hexadecimal digits.
  const std::string& key_check() const { return key_check_; }

 private:
  class Contexts;
  SectorCipher(std::unique_ptr<Contexts> encrypting, std::unique_ptr<Contexts> decrypting,
               std::unique_ptr<Contexts> tails, std::string key_check);
  Status run(Contexts& contexts, const Name& name, std::uint64_t offset, ByteView from,
             MutableByteView into);
  Status run_sectors(Contexts& contexts, const Name& name, std::uint64_t sector, ByteView from,
                     MutableByteView into);
  // Of fewer bytes than the cipher's block.
  Status hide_tail(const Name& name, std::uint64_t sector, ByteView from, MutableByteView into);

  const std::unique_ptr<Contexts> encrypting_;
  const std::unique_ptr<Contexts> decrypting_;
  const std::unique_ptr<Contexts> tails_;
  const std::string key_check_;
};

}  // namespace millrace
