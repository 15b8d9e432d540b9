// A start with so many segments that threads read ahead.

#include "cache/segment_loader.h"

#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cache/segment_store.h"
#include "platform/memory_disk.h"
#include "tests/cache/segment_objects.h"

namespace millrace {
namespace {

// Each object of kOwnSegmentBytes has a segment of its own.
constexpr SegmentOptions kOneObjectEach = {.segment_bytes_max = 8 * kKiB, .open_files_max = 4};
constexpr std::uint64_t kOwnSegmentBytes = 5000;
constexpr std::uint32_t kManySegments = 300;

std::string numbered_segment_file(std::uint32_t segment, std::string_view extension) {
  return fmt::format("{}/segments/{:08x}.{}", kSegmentCache, segment, extension);
}

void put_many_segments(Disk& disk) {
  const auto segments = open_segments(disk, kOneObjectEach);
  for (std::uint32_t n = 0; n < kManySegments; ++n) {
    ASSERT_TRUE(put_segment_object(*segments, segment_object(n, kOwnSegmentBytes)).ok());
  }
  ASSERT_EQ(segments->usage().segments, kManySegments);
}

TEST(SegmentLoader, GivesAllInOrder) {
  MemoryDisk disk;
  put_many_segments(disk);
  const SegmentFiles files(disk, std::string(kSegmentCache) + "/segments", 4);
  for (const std::uint32_t count : {0U, 1U, 64U, 65U, kManySegments}) {
    SCOPED_TRACE(count);
    std::vector<FoundSegment> found;
    for (std::uint32_t segment = 0; segment < count; ++segment) {
      found.push_back({.segment = segment, .has_data = true, .has_index = true});
    }
    SegmentLoader loader(disk, files, found);
    for (std::uint32_t segment = 0; segment < count; ++segment) {
      ASSERT_TRUE(loader.has_next());
      const LoadedSegment loaded = loader.next();
      ASSERT_TRUE(loaded.status.ok());
      ASSERT_EQ(loaded.segment, segment);
      ASSERT_EQ(loaded.index.places.size(), 1U);
      ASSERT_EQ(loaded.index.places[0].digest, segment_object(segment, kOwnSegmentBytes).digest());
    }
    ASSERT_FALSE(loader.has_next());
  }
}

TEST(SegmentLoader, MayGoBeforeAllAreTaken) {
  MemoryDisk disk;
  put_many_segments(disk);
  const SegmentFiles files(disk, std::string(kSegmentCache) + "/segments", 4);
  std::vector<FoundSegment> found(kManySegments, {.has_data = true, .has_index = true});
  for (std::uint32_t segment = 0; segment < kManySegments; ++segment)
    found[segment].segment = segment;
  SegmentLoader loader(disk, files, found);
  ASSERT_EQ(loader.next().segment, 0U);
}

TEST(SegmentLoader, AStartReportsDamageInOrder) {
  MemoryDisk disk;
  put_many_segments(disk);
  std::vector<std::string> damaged;
  for (std::uint32_t segment = 3; segment < kManySegments; segment += 7) {
    damaged.push_back(numbered_segment_file(segment, "idx"));
    flip_segment_bit(disk, damaged.back(), 64 * 8 + segment);
  }
  const auto segments = open_segments(disk, kOneObjectEach);
  std::vector<std::string> reported;
  for (const SegmentDamage& damage : *segments.damage)
    reported.push_back(damage.path);
  EXPECT_EQ(reported, damaged);
  EXPECT_EQ(segments->usage().records, kManySegments - damaged.size());
  for (std::uint32_t n = 0; n < kManySegments; ++n) {
    const ObjectVersion version = segment_object(n, kOwnSegmentBytes);
    const auto content = read_segment_object(*segments, version);
    ASSERT_EQ(content.has_value(), n % 7 != 3) << n;
    if (content) {
      ASSERT_EQ(*content, segment_content(version));
    }
  }
}

TEST(SegmentLoader, ALaterFormatEndsAStartAndChangesNothing) {
  MemoryDisk disk;
  put_many_segments(disk);
  // The last segment is of a later format, and an earlier one would be repaired.
  SegmentBlock header = encode_segment_index_header(kManySegments - 1);
  header[8] = std::byte{9};
  const std::uint32_t checksum = crc32c(ByteView(header).first(60));
  std::memcpy(header.data() + 60, &checksum, sizeof checksum);
  const std::string later = numbered_segment_file(kManySegments - 1, "idx");
  write_segment_file(disk, later, 0, as_text(header));
  const std::string damaged = numbered_segment_file(1, "idx");
  flip_segment_bit(disk, damaged, 64 * 8);
  const std::string before = segment_file_content(disk, damaged);
  const auto opened = try_open_segments(disk, kOneObjectEach);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), StatusCode::kUnsupported);
  EXPECT_NE(opened.error().message().find(later), std::string::npos) << opened.error().to_string();
  EXPECT_EQ(segment_file_content(disk, damaged), before);
}

}  // namespace
}  // namespace millrace
