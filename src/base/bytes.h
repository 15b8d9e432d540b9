#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace millrace {

using ByteView = std::span<const std::byte>;
using MutableByteView = std::span<std::byte>;

inline ByteView as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string_view as_text(ByteView bytes) {
  // std::byte and char may alias: this is the one place that says so.
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The half-open range [offset, offset + length) of an object or file.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  std::uint64_t end() const { return offset + length; }
  bool empty() const { return length == 0; }
  bool operator==(const ByteRange&) const = default;
};

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;
inline constexpr std::uint64_t kTiB = 1024 * kGiB;

}  // namespace millrace
