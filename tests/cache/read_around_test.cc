#include "cache/read_around.h"

#include <cstdint>
#include <random>

#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr std::uint64_t kPackBytes = 64 * kMiB;
constexpr std::uint64_t kPackedFileBytes = 110 * kKiB;

TEST(ReadAround, AFirstMissFetchesNothingElse) {
  ReadAround around({});
  EXPECT_TRUE(around.note_miss({5 * kMiB, kPackedFileBytes}, kPackBytes).empty());
}

TEST(ReadAround, LaterMissesFetchWhatIsAroundThem) {
  ReadAround around({});
  around.note_miss({5 * kMiB, kPackedFileBytes}, kPackBytes);
  const ByteRange fetched = around.note_miss({40 * kMiB, kPackedFileBytes}, kPackBytes);
  EXPECT_GE(fetched.length, 2 * kMiB);
  EXPECT_LE(fetched.offset, 40 * kMiB);
  EXPECT_GT(fetched.end(), 40 * kMiB);
}

TEST(ReadAround, NeverFetchesMoreThanThirtyTwoTimesWhatWasMissed) {
  std::mt19937_64 random(7);
  ReadAround around({});
  std::uint64_t missed_bytes = 0;
  std::uint64_t fetched_bytes = 0;
  for (int n = 0; n < 200; ++n) {
    const std::uint64_t length = 1 + random() % (300 * kKiB);
    const std::uint64_t offset = random() % (kPackBytes - length);
    const ByteRange fetched = around.note_miss({offset, length}, kPackBytes);
    ASSERT_LE(fetched.end(), kPackBytes);
    ASSERT_LE(fetched.length, 4 * kMiB);
    fetched_bytes += fetched.length;
    ASSERT_LE(fetched_bytes, 32 * missed_bytes);
    missed_bytes += length;
  }
  EXPECT_GT(fetched_bytes, kPackBytes) << "it is not shy either";
}

TEST(ReadAround, StaysWithinTheObject) {
  ReadAround around({});
  around.note_miss({0, 4 * kMiB}, 5 * kMiB);
  EXPECT_EQ(around.note_miss({4 * kMiB, kMiB}, 5 * kMiB), (ByteRange{4 * kMiB, kMiB}));
}

TEST(ReadAround, IsOffWithoutAWindow) {
  ReadAround around({.window_bytes_max = 0});
  for (int n = 0; n < 10; ++n)
    EXPECT_TRUE(around.note_miss({0, kMiB}, kPackBytes).empty());
}

}  // namespace
}  // namespace millrace
