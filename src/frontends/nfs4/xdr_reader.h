#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/bytes.h"
#include "base/status.h"

namespace millrace {

// Takes XDR (RFC 4506) apart, as far as bytes that a stranger sent allow it.
//
// Invariants:
//  1. No byte outside of those given is read, and every count is checked before it is used.
//  2. The first thing that is wrong fails the reader for good: from then on everything reads as 0
//     or empty, nothing is consumed, and status() names the first cause and place. So a decoder
//     reads all its fields, and then asks once.
//
// Views live as long as the bytes. Copyable (a copy reads on by itself), thread-compatible.
class XdrReader {
 public:
  explicit XdrReader(ByteView bytes) : bytes_(bytes) {}

  std::uint32_t u32() {
    const ByteView bytes = take(sizeof(std::uint32_t), "the bytes end inside a number");
    if (bytes.empty()) return 0;
    std::uint32_t value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return __builtin_bswap32(value);
  }
  std::uint64_t u64() {
    const ByteView bytes = take(sizeof(std::uint64_t), "the bytes end inside a long number");
    if (bytes.empty()) return 0;
    std::uint64_t value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return __builtin_bswap64(value);
  }
  std::int64_t i64() { return static_cast<std::int64_t>(u64()); }
  // Anything but 0 and 1 is wrong.
  bool boolean();
  // The number only: which values are known is the caller's to judge.
  template <class Enum>
    requires std::is_enum_v<Enum>
  Enum enumeration() {
    return static_cast<Enum>(u32());
  }

  // A counted field of at most `bytes_max`, with its padding. Padding that is not 0 is let pass:
  // nobody looks at it.
  ByteView opaque(std::size_t bytes_max);
  std::string_view text(std::size_t bytes_max) { return as_text(opaque(bytes_max)); }
  // A field of a size that both sides know, with its padding.
  ByteView fixed(std::size_t size);
  template <std::size_t kSize>
  std::array<std::byte, kSize> fixed_array() {
    std::array<std::byte, kSize> copy = {};
    const ByteView view = fixed(kSize);
    for (std::size_t i = 0; i < view.size(); ++i)
      copy[i] = view[i];
    return copy;
  }
  // How many elements follow: at most `count_max`, and no more than there are bytes for when each
  // takes at least `element_bytes_min`.
  std::uint32_t count(std::uint32_t count_max, std::size_t element_bytes_min = 4);

  bool ok() const { return failure_ == nullptr; }
  // kCorruption, with what was expected and where, or success.
  Status status() const;
  // For what a caller finds wrong with values. The text outlives the reader.
  void fail(const char* why);

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return ok() ? bytes_.size() - position_ : 0; }
  // Between two positions that were read already.
  ByteView between(std::size_t from, std::size_t to) const {
    return bytes_.subspan(from, to - from);
  }

 private:
  ByteView take(std::size_t size, const char* what) {
    if (!ok()) return {};
    if (size > bytes_.size() - position_) {
      failure_ = what;
      return {};
    }
    const ByteView taken = bytes_.subspan(position_, size);
    position_ += size;
    return taken;
  }

  ByteView bytes_;
  std::size_t position_ = 0;
  const char* failure_ = nullptr;
};

}  // namespace millrace
