#include "base/checksum.h"

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace millrace {
namespace {

// The definition, bit by bit: nothing shared with what is tested.
template <class Word>
Word bitwise(Word reflected_polynomial, ByteView bytes, Word crc = 0) {
  Word state = ~crc;
  for (const std::byte byte : bytes) {
    state ^= std::to_integer<Word>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      state = (state & 1) != 0 ? state >> 1 ^ reflected_polynomial : state >> 1;
    }
  }
  return ~state;
}
std::uint32_t reference_32(ByteView bytes) { return bitwise<std::uint32_t>(0x82f63b78, bytes); }
std::uint64_t reference_64(ByteView bytes) {
  return bitwise<std::uint64_t>(0x9a6c9329ac4bc9b5, bytes);
}

std::vector<std::byte> random_bytes(Random& random, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(random.next());
  return bytes;
}

TEST(Checksum, CheckValues) {
  const ByteView digits = as_bytes("123456789");
  EXPECT_EQ(crc32c(digits), 0xe3069283U);
  EXPECT_EQ(portable::crc32c(digits), 0xe3069283U);
  EXPECT_EQ(crc64nvme(digits), 0xae8b14860a799888U);
  EXPECT_EQ(portable::crc64nvme(digits), 0xae8b14860a799888U);
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(crc64nvme({}), 0U);
  // RFC 3720, B.4.
  const std::vector<std::byte> zeros(32);
  EXPECT_EQ(crc32c(zeros), 0x8a9136aaU);
  const std::vector<std::byte> ones(32, std::byte{0xff});
  EXPECT_EQ(crc32c(ones), 0x62a8ab43U);
}

TEST(Checksum, EveryShortLengthAndAlignment) {
  SeededRandom random(1);
  const auto bytes = random_bytes(random, 1100);
  for (std::size_t offset = 0; offset < 17; ++offset) {
    for (std::size_t size = 0; size < 1000; size += size < 300 ? 1 : 37) {
      const ByteView view = ByteView(bytes).subspan(offset, size);
      ASSERT_EQ(crc32c(view), reference_32(view)) << offset << " " << size;
      ASSERT_EQ(portable::crc32c(view), reference_32(view)) << offset << " " << size;
      ASSERT_EQ(crc64nvme(view), reference_64(view)) << offset << " " << size;
      ASSERT_EQ(portable::crc64nvme(view), reference_64(view)) << offset << " " << size;
    }
  }
}

TEST(Checksum, LongInputsSplitAnywhereAndCombined) {
  SeededRandom random(2);
  const auto bytes = random_bytes(random, 100'000);
  for (int round = 0; round < 30; ++round) {
    const std::size_t size = random.next() % bytes.size();
    const std::size_t split = random.next() % (size + 1);
    const ByteView all = ByteView(bytes).subspan(random.next() % (bytes.size() - size), size);
    const ByteView a = all.first(split);
    const ByteView b = all.subspan(split);
    const std::uint32_t want_32 = reference_32(all);
    const std::uint64_t want_64 = reference_64(all);
    ASSERT_EQ(crc32c(all), want_32) << size;
    ASSERT_EQ(crc32c(b, crc32c(a)), want_32) << size << " at " << split;
    ASSERT_EQ(crc32c_combine(crc32c(a), crc32c(b), b.size()), want_32);
    ASSERT_EQ(portable::crc32c(b, portable::crc32c(a)), want_32);
    ASSERT_EQ(crc64nvme(all), want_64) << size;
    ASSERT_EQ(crc64nvme(b, crc64nvme(a)), want_64) << size << " at " << split;
    ASSERT_EQ(crc64nvme_combine(crc64nvme(a), crc64nvme(b), b.size()), want_64);
    ASSERT_EQ(portable::crc64nvme(b, portable::crc64nvme(a)), want_64);
  }
}

TEST(Checksum, CombiningWithNothingChangesNothing) {
  EXPECT_EQ(crc32c_combine(0x12345678, 0, 0), 0x12345678U);
  EXPECT_EQ(crc64nvme_combine(0x123456789abcdef0, 0, 0), 0x123456789abcdef0U);
}

TEST(Checksum, CombinesLengthsBeyondMemory) {
  // 3 * 2^61 bytes, in two ways: lengths in bits would not fit 64 of them.
  const std::uint64_t length = std::uint64_t{1} << 61;
  const std::uint32_t once = crc32c_combine(0x12345678, 0, length);
  EXPECT_EQ(crc32c_combine(crc32c_combine(once, 0, length), 0, length),
            crc32c_combine(0x12345678, 0, 3 * length));
}

TEST(Checksum, EveryFlippedBitShows) {
  SeededRandom random(3);
  auto bytes = random_bytes(random, 4096);
  const std::uint32_t good_32 = crc32c(bytes);
  const std::uint64_t good_64 = crc64nvme(bytes);
  for (std::size_t i = 0; i < bytes.size(); i += 13) {
    bytes[i] ^= std::byte{0x10};
    ASSERT_NE(crc32c(bytes), good_32);
    ASSERT_NE(crc64nvme(bytes), good_64);
    bytes[i] ^= std::byte{0x10};
  }
}

}  // namespace
}  // namespace millrace
