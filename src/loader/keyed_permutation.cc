#include "loader/keyed_permutation.h"

#include <bit>
#include <cassert>

namespace millrace {

namespace {

// The fractional part of the golden ratio: consecutive multiples differ in many bits.
constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
// Four make a good shuffle of a large set. Few bits, as the rows of a window have, need more until
// all permutations come up about as often.
constexpr int kRounds = 8;
constexpr int kFewBitsRounds = 24;
constexpr int kFewBits = 3;

constexpr std::uint64_t low_mask(unsigned bits) { return (std::uint64_t{1} << bits) - 1; }

}  // namespace

std::uint64_t scramble(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0xD6E8FEB86659FD93;
  value ^= value >> 32;
  value *= 0xD6E8FEB86659FD93;
  value ^= value >> 32;
  return value;
}

std::uint64_t subkey(std::uint64_t key, std::uint64_t number) {
  return scramble(scramble(key + kGolden) ^ (number * kGolden + 1));
}

KeyedPermutation::KeyedPermutation(std::uint64_t key, std::uint64_t size) : key_(key), size_(size) {
  assert(size >= 1 && size <= std::uint64_t{1} << 63);
  const auto bits = static_cast<unsigned>(std::bit_width(size - 1));
  low_bits_ = static_cast<std::uint8_t>(bits / 2);
  high_bits_ = static_cast<std::uint8_t>(bits - bits / 2);
}

std::uint64_t KeyedPermutation::step(std::uint64_t value) const {
  std::uint64_t high = value >> low_bits_;
  std::uint64_t low = value & low_mask(low_bits_);
  std::uint64_t round_key = key_;
  const int rounds = low_bits_ + high_bits_ <= kFewBits ? kFewBitsRounds : kRounds;
  for (int round = 0; round < rounds; round += 2) {
    round_key += kGolden;
    high ^= scramble(low ^ round_key) & low_mask(high_bits_);
    round_key += kGolden;
    low ^= scramble(high ^ round_key) & low_mask(low_bits_);
  }
  return high << low_bits_ | low;
}

std::uint64_t KeyedPermutation::at(std::uint64_t position) const {
  assert(position < size_);
  // A cycle of the network that starts inside comes back inside, so this ends.
  do {
    position = step(position);
  } while (position >= size_);
  return position;
}

}  // namespace millrace
