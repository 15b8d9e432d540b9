#include "cache/readahead.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "cache/unit.h"

namespace millrace {
namespace {

TEST(Readahead, AFirstReadFetchesNothingElse) {
  Readahead readahead({});
  for (std::uint64_t at = 0; at < 100; ++at)
    EXPECT_TRUE(readahead.note_read({at * 50 * kMiB, kMiB}, kTiB).empty());
}

TEST(Readahead, ASecondReadOpensTheWindow) {
  Readahead readahead({});
  EXPECT_TRUE(readahead.note_read({0, kMiB}, kGiB).empty());
  const ByteRange ahead = readahead.note_read({kMiB, kMiB}, kGiB).bytes;
  EXPECT_EQ(ahead.offset, 2 * kMiB);
  EXPECT_GE(ahead.length, 8 * kMiB);
}

TEST(Readahead, WhatLiesBetweenTheFilesOfAPackIsNoGap) {
  Readahead readahead({});
  const std::uint64_t apart_bytes = 110 * kKiB + 1024;
  EXPECT_TRUE(readahead.note_read({0, 110 * kKiB}, kGiB).empty());
  EXPECT_FALSE(readahead.note_read({apart_bytes, 110 * kKiB}, kGiB).empty());
  Readahead other({});
  EXPECT_TRUE(other.note_read({0, 110 * kKiB}, kGiB).empty());
  EXPECT_TRUE(other.note_read({110 * kKiB + kUnitBytes, 110 * kKiB}, kGiB).empty());
}

TEST(Readahead, IsOffWithoutAWindow) {
  Readahead readahead({.window_bytes_max = 0});
  for (std::uint64_t at = 0; at < 64 * kMiB; at += kMiB)
    EXPECT_TRUE(readahead.note_read({at, kMiB}, kGiB).empty());
}

// Follows one sequential reader, and checks that announcements join, end with the object, and keep
// ahead without running away.
void follow_stream(std::uint64_t first, std::uint64_t read_bytes, std::uint64_t object_size,
                   std::uint64_t window_bytes_max) {
  Readahead readahead({.window_bytes_max = window_bytes_max});
  std::uint64_t announced = 0;  // Up to where; 0 before the first announcement.
  for (std::uint64_t at = first; at < object_size; at += read_bytes) {
    const ByteRange read{at, std::min(read_bytes, object_size - at)};
    const ByteRange ahead = readahead.note_read(read, object_size).bytes;
    if (ahead.empty()) continue;
    ASSERT_GE(ahead.offset, read.end());
    ASSERT_TRUE(announced == 0 || ahead.offset == std::max(announced, read.end())) << at;
    announced = ahead.end();
    ASSERT_LE(announced, object_size);
    const std::uint64_t read_so_far = read.end() - first;
    const std::uint64_t window = std::min(8 * read_so_far, window_bytes_max);
    ASSERT_LE(announced - read.end(), window + kMiB) << at;
  }
  EXPECT_GE(announced + read_bytes, object_size);
}

TEST(Readahead, AStreamIsAnnouncedOnceAndToTheEnd) {
  for (const std::uint64_t read_bytes :
       {4 * kKiB, 64 * kKiB, 100'000 * std::uint64_t{1}, 128 * kKiB, kMiB, 7 * kMiB}) {
    for (const std::uint64_t window : {kMiB, 8 * kMiB, 64 * kMiB}) {
      SCOPED_TRACE(std::to_string(read_bytes) + " in " + std::to_string(window));
      follow_stream(0, read_bytes, 200 * kMiB + 17, window);
      follow_stream(33 * kMiB + 5, read_bytes, 200 * kMiB + 17, window);
    }
  }
}

TEST(Readahead, TheWindowStaysAheadOfAStream) {
  Readahead readahead({.window_bytes_max = 64 * kMiB});
  std::uint64_t announced = 0;
  for (std::uint64_t at = 0; at < kGiB; at += 128 * kKiB) {
    const ByteRange ahead = readahead.note_read({at, 128 * kKiB}, 2 * kGiB).bytes;
    announced = std::max(announced, ahead.end());
    if (at >= 16 * kMiB) {
      ASSERT_GE(announced, at + 60 * kMiB) << "nearly all of the window";
    }
  }
}

TEST(Readahead, AStreamIsAnnouncedInLargePieces) {
  Readahead readahead({.window_bytes_max = 64 * kMiB});
  std::uint64_t announcements = 0;
  for (std::uint64_t at = 0; at < kGiB; at += 128 * kKiB) {
    const FetchAhead ahead = readahead.note_read({at, 128 * kKiB}, kGiB);
    if (ahead.empty()) continue;
    ++announcements;
    if (at > 8 * kMiB && ahead.bytes.end() < kGiB) {
      EXPECT_EQ(ahead.piece_bytes, kMiB);
      EXPECT_EQ(ahead.bytes.end() % kMiB, 0u);
      EXPECT_GE(ahead.bytes.length, 4 * kMiB);
    }
  }
  EXPECT_LT(announcements, 400u);
}

TEST(Readahead, WhatIsRetractedIsAnnouncedAgain) {
  Readahead readahead({.window_bytes_max = 16 * kMiB});
  std::uint64_t at = 0;
  FetchAhead ahead;
  for (; at < 32 * kMiB; at += kMiB)
    ahead = readahead.note_read({at, kMiB}, kGiB);
  readahead.retract({at + 6 * kMiB, kMiB});
  readahead.retract({at + 4 * kMiB, kMiB});
  readahead.retract({at - 4 * kMiB, kMiB});  // Passed.
  ahead = readahead.note_read({at, kMiB}, kGiB);
  EXPECT_EQ(ahead.bytes.offset, at + 4 * kMiB);
  EXPECT_GE(ahead.bytes.end(), at + 16 * kMiB);
}

TEST(Readahead, EightStreamsAreFollowedAtOnce) {
  Readahead readahead({.window_bytes_max = 64 * kMiB});
  constexpr std::uint64_t kApart = 10 * kGiB;
  std::vector<std::uint64_t> announced(8);
  for (std::uint64_t turn = 0; turn < 400; ++turn) {
    for (std::uint64_t stream = 0; stream < 8; ++stream) {
      const ByteRange read{stream * kApart + turn * kMiB, kMiB};
      const ByteRange ahead = readahead.note_read(read, 8 * kApart).bytes;
      if (ahead.empty()) continue;
      ASSERT_EQ(ahead.offset / kApart, stream);
      ASSERT_TRUE(announced[stream] == 0 || ahead.offset == announced[stream]);
      announced[stream] = ahead.end();
    }
  }
  for (std::uint64_t stream = 0; stream < 8; ++stream)
    EXPECT_GE(announced[stream], stream * kApart + 430 * kMiB);
}

// A kernel sends the reads of one stream from several threads.
TEST(Readahead, ReadsOfOneStreamMayOvertakeEachOther) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    constexpr std::uint64_t kRead = 128 * kKiB;
    constexpr std::uint64_t kReads = 4096;
    std::vector<std::uint64_t> order(kReads);
    std::iota(order.begin(), order.end(), 0);
    // In order until the stream is known, then each group of eight in any order.
    for (std::size_t at = 64; at + 8 <= order.size(); at += 8)
      std::shuffle(order.begin() + static_cast<std::ptrdiff_t>(at),
                   order.begin() + static_cast<std::ptrdiff_t>(at + 8), random);
    Readahead readahead({});
    std::uint64_t announced = 0;
    std::uint64_t announced_bytes = 0;
    for (const std::uint64_t number : order) {
      const ByteRange ahead = readahead.note_read({number * kRead, kRead}, kReads * kRead).bytes;
      if (ahead.empty()) continue;
      ASSERT_GE(ahead.offset, announced) << "announced twice";
      announced = ahead.end();
      announced_bytes += ahead.length;
    }
    EXPECT_EQ(announced, kReads * kRead);
    // Nothing but the reads before the first announcement was left out.
    EXPECT_GE(announced_bytes, kReads * kRead - 4 * kMiB);
  }
}

// What is fetched, in units, when reads and announcements each fetch what is not there yet.
double overfetch(std::uint64_t seed, std::uint64_t object_size, std::uint64_t reads) {
  std::mt19937_64 random(seed);
  Readahead readahead({});
  const std::uint64_t units = object_size / kUnitBytes;
  std::vector<bool> there(units);
  std::uint64_t fetched = 0;
  const auto fetch = [&](ByteRange bytes) {
    const UnitRange range = units_of(bytes);
    for (std::uint32_t unit = range.first; unit < range.end(); ++unit) {
      if (!there[unit]) ++fetched;
      there[unit] = true;
    }
  };
  for (std::uint64_t i = 0; i < reads; ++i) {
    const ByteRange read{random() % units * kUnitBytes, kUnitBytes};
    fetch(read);
    fetch(readahead.note_read(read, object_size).bytes);
  }
  return static_cast<double>(fetched) / static_cast<double>(reads);
}

TEST(Readahead, RandomReadsFetchLittleMoreThanTheyAskFor) {
  for (const std::uint64_t size : {64 * kMiB, 256 * kMiB, kGiB, 4 * kGiB}) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(size) + " bytes");
      ASSERT_LE(overfetch(seed, size, 500), 1.2);
      ASSERT_LE(overfetch(seed, size, 5000), 1.2);
    }
  }
}

TEST(Readahead, AnEmptyReadIsNone) {
  Readahead readahead({});
  EXPECT_TRUE(readahead.note_read({0, kMiB}, kGiB).empty());
  EXPECT_TRUE(readahead.note_read({kMiB, 0}, kGiB).empty());
  EXPECT_FALSE(readahead.note_read({kMiB, kMiB}, kGiB).empty());
}

}  // namespace
}  // namespace millrace
