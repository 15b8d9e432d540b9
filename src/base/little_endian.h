#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>

namespace millrace {

static_assert(std::endian::native == std::endian::little,
              "formats on disk are little-endian; a big-endian port swaps here");

// Numbers of our formats on disk and on the wire, at any alignment.
template <std::unsigned_integral Number>
Number load_little_endian(const std::byte* from) {
  Number value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <std::unsigned_integral Number>
void store_little_endian(std::byte* to, Number value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace millrace
