#pragma once

#include <cstdint>

namespace millrace {

// What a loader hashes small numbers with: every bit of the argument decides every bit of the
// result. Part of the order's algorithm, so it never changes.
std::uint64_t scramble(std::uint64_t value);
// A key made of another and a number: of one key, as many as are needed.
std::uint64_t subkey(std::uint64_t key, std::uint64_t number);

// A shuffle of 0 .. size - 1 that is computed and not stored: a Feistel network over the next power
// of two, walked until it falls inside. A plain value of 24 bytes, cheap enough to be made for a
// single look-up.
//
// 1. at() takes each value once.
// 2. It depends on key and size alone, on every machine and in every release: a state that names
//    kAlgorithm is resumed by the same order.
class KeyedPermutation {
 public:
  static constexpr unsigned kAlgorithm = 1;

  // `size` is at least 1 and at most 2^63.
  KeyedPermutation(std::uint64_t key, std::uint64_t size);

  std::uint64_t size() const { return size_; }
  // `position` is below size(). Takes two walks at most on average, some 20 ns each.
  std::uint64_t at(std::uint64_t position) const;

 private:
  std::uint64_t step(std::uint64_t value) const;

  std::uint64_t key_;
  std::uint64_t size_;
  // How the bits of a value are parted; both sides together are those of size - 1.
  std::uint8_t high_bits_;
  std::uint8_t low_bits_;
};

}  // namespace millrace
