#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace {

// Keys of objects that must stay, 16 bytes of memory each. Where there are too many for that, they
// are looked at in several passes, each of which has its share of all keys.
//
// Two keys with one digest (of 128 bits of SHA-256) keep an object too much, never too little.
// Lifecycle: add, seal once, ask. Thread-compatible.
class AliveKeys {
 public:
  // 128 MiB.
  static constexpr std::uint64_t kKeysPerPassMax = 8'000'000;
  static std::uint64_t passes_for(std::uint64_t keys) { return keys / kKeysPerPassMax + 1; }

  // `pass` is below `passes`.
  AliveKeys(std::uint64_t pass, std::uint64_t passes) : pass_(pass), passes_(passes) {}

  // Keys of other passes are left out.
  void add(std::string_view key);
  void seal();
  // Whether the key belongs to this pass and was not added.
  bool is_dead(std::string_view key) const;

  std::size_t count() const { return digests_.size(); }

 private:
  using Digest = std::array<std::byte, 16>;
  static Digest digest_of_key(std::string_view key);
  bool in_pass(const Digest& digest) const;

  const std::uint64_t pass_;
  const std::uint64_t passes_;
  std::vector<Digest> digests_;
};

}  // namespace millrace
