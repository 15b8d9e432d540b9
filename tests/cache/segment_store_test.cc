#include "cache/segment_store.h"

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "base/little_endian.h"
#include "platform/memory_disk.h"
#include "tests/cache/segment_objects.h"

namespace millrace {
namespace {

// Sanitizers make everything ten times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSegmentsSanitized = true;
#elif defined(__has_feature)
constexpr bool kSegmentsSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSegmentsSanitized = false;
#endif

constexpr SegmentOptions kTinySegments = {.segment_bytes_max = 64 * kKiB, .open_files_max = 2};

std::vector<std::string> segment_names(Disk& disk) {
  std::vector<std::string> names;
  const auto entries = disk.list(std::string(kSegmentCache) + "/segments").value();
  for (const DirectoryEntry& entry : entries) {
    names.push_back(entry.name);
  }
  return names;
}

TEST(SegmentStore, GivesBackWhatWasPut) {
  MemoryDisk disk;
  auto segments = open_segments(disk);
  const std::uint64_t sizes[] = {
      0, 1, 4095, 4096, kUnitBytes - 1, kUnitBytes, kUnitBytes + 1, kSmallObjectBytesMax};
  for (const std::uint64_t size : sizes) {
    const ObjectVersion version = segment_object(1, size);
    EXPECT_EQ(segments->load(version).error(), StatusCode::kNotFound);
    ASSERT_TRUE(put_segment_object(*segments, version).ok());
    EXPECT_EQ(read_segment_object(*segments, version).value(), segment_content(version));
    EXPECT_TRUE(segments->contains(version.digest()));
    EXPECT_EQ(segments->version_of(version.digest()).value().key(), version.key());
  }
  EXPECT_EQ(segments->usage().records, std::size(sizes));
  segments = open_segments(disk);
  for (const std::uint64_t size : sizes) {
    const ObjectVersion version = segment_object(1, size);
    EXPECT_EQ(read_segment_object(*segments, version).value(), segment_content(version));
    EXPECT_EQ(segments->version_of(version.digest()).value().digest(), version.digest());
  }
  EXPECT_TRUE(segments.damage->empty());
}

TEST(SegmentStore, RefusesWhatIsNoSmallObject) {
  MemoryDisk disk;
  const auto segments = open_segments(disk);
  const auto put = [&](std::uint64_t size, std::size_t stored, std::size_t checksums) {
    return segments->put(segment_object(1, size), as_bytes(std::string(stored, 'x')),
                         UnitChecksums(checksums));
  };
  EXPECT_EQ(put(10, 9, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(put(10, 11, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(put(10, 10, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(put(10, 10, 2), StatusCode::kInvalidArgument);
  EXPECT_EQ(put(kSmallObjectBytesMax + 1, kSmallObjectBytesMax + 1, 17),
            StatusCode::kInvalidArgument);
  const ObjectVersion long_key(StoreId("s"), ObjectKey(std::string(9000, 'k')), ObjectIdentity("i"),
                               0);
  EXPECT_EQ(segments->put(long_key, {}, {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(segments->usage().records, 0U);
  EXPECT_TRUE(segment_names(disk).empty());
}

TEST(SegmentStore, APutOfWhatIsThereWritesNothing) {
  MemoryDisk disk;
  const auto segments = open_segments(disk);
  const ObjectVersion version = segment_object(1, 100);
  ASSERT_TRUE(put_segment_object(*segments, version).ok());
  const std::string index = segment_file_content(disk, segment_file(0, "idx"));
  ASSERT_TRUE(put_segment_object(*segments, version).ok());
  EXPECT_EQ(segment_file_content(disk, segment_file(0, "idx")), index);
  EXPECT_EQ(segments->usage().bytes, kSegmentPageBytes);
}

TEST(SegmentStore, RemovalFreesSpaceAndEmptySegmentsGo) {
  MemoryDisk disk;
  const auto segments = open_segments(disk, kTinySegments);
  const auto allocated = [&](std::uint32_t segment) {
    return disk.stat(segment_file(segment, "seg")).value().allocated_bytes;
  };
  // Two of 28 KiB fill a segment.
  for (std::uint64_t n = 0; n < 4; ++n) {
    ASSERT_TRUE(put_segment_object(*segments, segment_object(n, 28'000)).ok());
  }
  EXPECT_EQ(segment_names(disk), (std::vector<std::string>{"00000000.idx", "00000000.seg",
                                                           "00000001.idx", "00000001.seg"}));
  const std::uint64_t full = allocated(0);
  const SmallObject held = segments->load(segment_object(0, 28'000)).value();
  EXPECT_TRUE(segments->still_there(held));
  ASSERT_TRUE(segments->remove(held.place.digest).ok());
  EXPECT_FALSE(segments->still_there(held));
  EXPECT_EQ(segments->remove(held.place.digest), StatusCode::kNotFound);
  EXPECT_LE(allocated(0), full - 28'000);
  EXPECT_EQ(segments->usage().bytes, 3U * 7 * kSegmentPageBytes);

  ASSERT_TRUE(segments->remove(segment_object(1, 28'000).digest()).ok());
  EXPECT_EQ(segment_names(disk), (std::vector<std::string>{"00000001.idx", "00000001.seg"}));
  // The newest is still written to.
  ASSERT_TRUE(segments->remove(segment_object(2, 28'000).digest()).ok());
  ASSERT_TRUE(segments->remove(segment_object(3, 28'000).digest()).ok());
  EXPECT_EQ(segment_names(disk), (std::vector<std::string>{"00000001.idx", "00000001.seg"}));
  EXPECT_EQ(segments->usage().bytes, 0U);
  EXPECT_EQ(segments->usage().unfreed_bytes, 0U);
  // A new segment takes its place, and it goes.
  ASSERT_TRUE(put_segment_object(*segments, segment_object(4, 28'000)).ok());
  EXPECT_EQ(segment_names(disk), (std::vector<std::string>{"00000002.idx", "00000002.seg"}));
}

TEST(SegmentStore, AStartAppendsToAFreshSegment) {
  MemoryDisk disk;
  ASSERT_TRUE(put_segment_object(*open_segments(disk), segment_object(0, 10)).ok());
  const std::string before = segment_file_content(disk, segment_file(0, "seg"));
  ASSERT_TRUE(put_segment_object(*open_segments(disk), segment_object(1, 10)).ok());
  EXPECT_EQ(segment_file_content(disk, segment_file(0, "seg")), before);
  const auto segments = open_segments(disk);
  EXPECT_EQ(segments->usage().segments, 2U);
  EXPECT_TRUE(segments->contains(segment_object(0, 10).digest()));
  EXPECT_TRUE(segments->contains(segment_object(1, 10).digest()));
}

TEST(SegmentStore, VisitsTheOldestFirst) {
  MemoryDisk disk;
  auto segments = open_segments(disk, kTinySegments);
  std::vector<ObjectDigest> expected;
  for (std::uint64_t n = 0; n < 50; ++n) {
    ASSERT_TRUE(put_segment_object(*segments, segment_object(n, 5000)).ok());
    expected.push_back(segment_object(n, 5000).digest());
  }
  for (const std::size_t n : {40, 7, 0}) {
    ASSERT_TRUE(segments->remove(expected[n]).ok());
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(n));
  }
  for (int round = 0; round < 2; ++round) {
    std::vector<ObjectDigest> visited;
    EXPECT_TRUE(segments->for_each([&](const ObjectDigest& digest) {
      visited.push_back(digest);
      EXPECT_EQ(segments->find(digest), 2U * kSegmentPageBytes);
      return true;
    }));
    EXPECT_EQ(visited, expected);
    int visits = 0;
    EXPECT_FALSE(segments->for_each([&](const ObjectDigest&) { return ++visits < 5; }));
    EXPECT_EQ(visits, 5);
    segments = open_segments(disk, kTinySegments);
  }
}

TEST(SegmentStore, IsAMapAcrossStarts) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    MemoryDisk disk;
    auto segments = open_segments(disk, kTinySegments);
    std::map<ObjectDigest, ObjectVersion> model;
    for (int step = 0; step < 400; ++step) {
      const std::uint64_t n = random() % 60;
      const ObjectVersion version = segment_object(n, n * n * 11);
      switch (random() % 8) {
        case 0:
        case 1:
        case 2:
          ASSERT_TRUE(put_segment_object(*segments, version).ok());
          model.emplace(version.digest(), version);
          break;
        case 3:
        case 4: {
          const bool there = model.erase(version.digest()) == 1;
          ASSERT_EQ(segments->remove(version.digest()).ok(), there);
          break;
        }
        case 5:
          if (random() % 10 == 0) segments = open_segments(disk, kTinySegments);
          break;
        default: {
          const auto content = read_segment_object(*segments, version);
          ASSERT_EQ(content.has_value(), model.contains(version.digest()));
          if (content) {
            ASSERT_EQ(*content, segment_content(version));
          }
        }
      }
      ASSERT_EQ(segments->usage().records, model.size());
    }
    segments = open_segments(disk, kTinySegments);
    std::uint64_t bytes = 0;
    segments->for_each([&](const ObjectDigest& digest) {
      EXPECT_TRUE(model.contains(digest));
      bytes += segments->find(digest).value_or(0);
      return true;
    });
    ASSERT_EQ(segments->usage().bytes, bytes);
    ASSERT_TRUE(segments.damage->empty());
  }
}

TEST(SegmentStore, ThreadsSeeWholeObjectsOrNone) {
  MemoryDisk disk;
  const auto segments = open_segments(disk, {.segment_bytes_max = 256 * kKiB, .open_files_max = 2});
  std::atomic<std::uint64_t> reads = 0;
  const auto work = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int step = 0; step < 1500; ++step) {
      const std::uint64_t n = random() % 24;
      const ObjectVersion version = segment_object(n, n * 4000);
      switch (random() % 4) {
        case 0:
          EXPECT_TRUE(put_segment_object(*segments, version).ok());
          break;
        case 1: {
          const Status status = segments->remove(version.digest());
          EXPECT_TRUE(status.ok() || status == StatusCode::kNotFound) << status.to_string();
          break;
        }
        default: {
          const auto content = read_segment_object(*segments, version);
          if (content) {
            EXPECT_EQ(*content, segment_content(version));
            reads.fetch_add(1);
          } else {
            EXPECT_EQ(content.error(), StatusCode::kNotFound) << content.error().to_string();
          }
        }
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t seed = 0; seed < 4; ++seed)
      threads.emplace_back(work, seed);
  }
  EXPECT_GT(reads.load(), 0U);
  EXPECT_TRUE(segments.damage->empty());
  EXPECT_EQ(segments->usage().unfreed_bytes, 0U);
  const auto again = open_segments(disk);
  EXPECT_TRUE(again.damage->empty());
  EXPECT_EQ(again->usage().records, segments->usage().records);
  EXPECT_EQ(again->usage().bytes, segments->usage().bytes);
}

// As many as a terabyte has. They all claim the same page, since a start reads no data.
TEST(SegmentStore, StartsWithMillionsOfRecords) {
  constexpr std::uint32_t kSegments = kSegmentsSanitized ? 6 : 62;
  constexpr std::uint32_t kRecords = 32'768;
  MemoryDisk disk;
  const std::string directory = std::string(kSegmentCache) + "/segments";
  ASSERT_TRUE(disk.make_directories(directory).ok());
  std::mt19937_64 random(1);
  for (std::uint32_t segment = 0; segment < kSegments; ++segment) {
    const SegmentBlock header = encode_segment_index_header(segment);
    std::string index(as_text(header));
    for (std::uint32_t record = 0; record < kRecords; ++record) {
      SegmentEntry entry{{}, segment, 0, 192, 100, 100};
      store_little_endian(entry.digest.bytes.data(), random());
      store_little_endian(entry.digest.bytes.data() + 8, random());
      const SegmentBlock block = encode_segment_entry(entry);
      index += as_text(block);
    }
    write_segment_file(disk, directory + "/" + segment_index_name(segment), 0, index);
    write_segment_file(disk, directory + "/" + segment_data_name(segment), 0,
                       std::string(kSegmentPageBytes, 'x'));
  }
  const auto segments = open_segments(disk);
  EXPECT_EQ(segments->usage().records, std::uint64_t{kSegments} * kRecords);
  EXPECT_EQ(segments->usage().segments, kSegments);
  EXPECT_TRUE(segments.damage->empty());
}

}  // namespace
}  // namespace millrace
