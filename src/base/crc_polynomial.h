#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace millrace::crc {

// Arithmetic on polynomials over GF(2) modulo a CRC's polynomial, in the reflected form that both
// our CRCs use: the highest bit of a word is the coefficient of x^0.
template <std::unsigned_integral Word>
struct Polynomial {
  Word reflected;

  static constexpr Word kOne = Word{1} << (std::numeric_limits<Word>::digits - 1);

  constexpr Word times_x(Word a) const {
    // Without a branch: a random bit is a misprediction every other time.
    return (a >> 1) ^ (reflected & (Word{0} - (a & 1)));
  }
  constexpr Word times(Word a, Word b) const {
    Word product = 0;
    for (Word bit = kOne; bit != 0; bit >>= 1) {
      if ((a & bit) != 0) product ^= b;
      b = times_x(b);
    }
    return product;
  }
  constexpr Word power_of_x(std::uint64_t exponent) const {
    Word result = kOne;
    Word square = kOne >> 1;  // x^(2^i)
    for (; exponent != 0; exponent >>= 1) {
      if ((exponent & 1) != 0) result = times(result, square);
      square = times(square, square);
    }
    return result;
  }
  // The CRC of A followed by B. The inversions before and after cancel out.
  constexpr Word combine(Word crc_a, Word crc_b, std::uint64_t length_b) const {
    // length_b * 8 may not fit: x^(8n) is (x^n)^8.
    Word shift = power_of_x(length_b);
    for (int i = 0; i < 3; ++i)
      shift = times(shift, shift);
    return times(crc_a, shift) ^ crc_b;
  }
};

inline constexpr Polynomial<std::uint32_t> kCrc32c{0x82f63b78};
inline constexpr Polynomial<std::uint64_t> kCrc64Nvme{0x9a6c9329ac4bc9b5};

// Tables for eight bytes at a time: entry [i][b] is what byte b contributes i bytes further on.
template <std::unsigned_integral Word>
using SliceTables = std::array<std::array<Word, 256>, 8>;

template <std::unsigned_integral Word>
constexpr SliceTables<Word> slice_tables(Polynomial<Word> polynomial) {
  SliceTables<Word> tables{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    Word value = static_cast<Word>(byte);
    for (int bit = 0; bit < 8; ++bit)
      value = polynomial.times_x(value);
    tables[0][byte] = value;
  }
  for (std::size_t i = 1; i < 8; ++i) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const Word before = tables[i - 1][byte];
      tables[i][byte] = static_cast<Word>(before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

}  // namespace millrace::crc
