#include <bit>
#include <cstring>

#include "base/crc.h"
#include "base/crc_polynomial.h"

namespace millrace::crc {

namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr SliceTables<std::uint32_t> kTables32 = slice_tables(kCrc32c);
constexpr SliceTables<std::uint64_t> kTables64 = slice_tables(kCrc64Nvme);

template <class Word>
Word by_tables(const SliceTables<Word>& tables, Word state, const std::byte* data,
               std::size_t size) {
  for (; size >= 8; data += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, data, sizeof(word));
    word ^= state;
    state = 0;
    for (std::size_t i = 0; i < 8; ++i)
      state ^= tables[7 - i][(word >> (8 * i)) & 0xff];
  }
  for (; size > 0; ++data, --size) {
    state =
        static_cast<Word>(state >> 8) ^ tables[0][(state ^ std::to_integer<Word>(*data)) & 0xff];
  }
  return state;
}

}  // namespace

std::uint32_t crc32c_tables(std::uint32_t state, const std::byte* data, std::size_t size) {
  return by_tables(kTables32, state, data, size);
}

std::uint64_t crc64nvme_tables(std::uint64_t state, const std::byte* data, std::size_t size) {
  return by_tables(kTables64, state, data, size);
}

}  // namespace millrace::crc
