// What disks do to segments: flipped bits, cuts, power losses.

#include <cerrno>
#include <random>

#include <gtest/gtest.h>

#include "base/checksum.h"
#include "base/little_endian.h"
#include "cache/segment_store.h"
#include "platform/faulty_disk.h"
#include "platform/memory_disk.h"
#include "tests/cache/segment_objects.h"

namespace millrace {
namespace {

constexpr SegmentOptions kShortSegments = {.segment_bytes_max = 32 * kKiB, .open_files_max = 4};

// The pages of a record's file that hold something: all but the padding at the end of the last one.
bool is_segment_padding(std::uint64_t byte) {
  std::uint64_t start = 0;
  for (const ObjectVersion& version : three_segment_objects()) {
    const auto header = encode_segment_record_header(version, 0, {}).value();
    const std::uint64_t end = start + header.size() + version.size();
    if (byte >= start && byte < end) return false;
    start = (end + kSegmentPageBytes - 1) / kSegmentPageBytes * kSegmentPageBytes;
  }
  return true;
}

TEST(SegmentDamage, EveryFlipInAnIndexIsReportedOnce) {
  MemoryDisk disk;
  put_three_segment_objects(disk);
  const std::string path = segment_file(0, "idx");
  const std::string index = segment_file_content(disk, path);
  ASSERT_EQ(index.size(), 4U * 64);
  for (std::uint64_t bit = 0; bit < index.size() * 8; ++bit) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    write_segment_file(disk, path, 0, index);
    flip_segment_bit(disk, path, bit);
    const auto segments = open_segments(disk);
    ASSERT_EQ(segments.damage->size(), 1U);
    ASSERT_EQ(segments.damage->front().path, path);
    ASSERT_EQ(segments->usage().damaged, 1U);
    const bool in_header = bit < 64U * 8;
    ASSERT_EQ(segments->usage().records, in_header ? 3U : 2U);
    for (const ObjectVersion& version : three_segment_objects()) {
      const auto content = read_segment_object(*segments, version);
      if (content) {
        ASSERT_EQ(*content, segment_content(version));
      } else {
        ASSERT_EQ(content.error(), StatusCode::kNotFound);
      }
    }
    // It was repaired.
    ASSERT_TRUE(open_segments(disk).damage->empty());
  }
}

TEST(SegmentDamage, EveryFlipInASegmentIsNoticed) {
  MemoryDisk disk;
  put_three_segment_objects(disk);
  const std::string path = segment_file(0, "seg");
  const std::uint64_t size = disk.stat(path).value().size;
  const auto segments = open_segments(disk);
  std::uint64_t noticed = 0;
  for (std::uint64_t bit = 0; bit < size * 8; ++bit) {
    if (is_segment_padding(bit / 8)) continue;
    flip_segment_bit(disk, path, bit);
    std::uint64_t bad = 0;
    for (const ObjectVersion& version : three_segment_objects()) {
      const auto content = read_segment_object(*segments, version);
      if (content) {
        ASSERT_EQ(*content, segment_content(version)) << "bit " << bit;
      } else {
        ASSERT_EQ(content.error(), StatusCode::kCorruption);
        ++bad;
      }
    }
    ASSERT_EQ(bad, 1U) << "bit " << bit;
    ++noticed;
    flip_segment_bit(disk, path, bit);
  }
  EXPECT_GT(noticed, 8U * 5020);
  EXPECT_EQ(segments.damage->size(), segments->usage().damaged);
  EXPECT_GT(segments.damage->size(), 8U * 3 * 128);
}

TEST(SegmentDamage, ABadRecordCanBeReplaced) {
  MemoryDisk disk;
  put_three_segment_objects(disk);
  flip_segment_bit(disk, segment_file(0, "seg"), 3);
  const auto segments = open_segments(disk);
  const ObjectVersion version = three_segment_objects()[0];
  EXPECT_EQ(segments->load(version).error(), StatusCode::kCorruption);
  EXPECT_EQ(segments->version_of(version.digest()).error(), StatusCode::kCorruption);
  ASSERT_TRUE(segments->remove(version.digest()).ok());
  ASSERT_TRUE(put_segment_object(*segments, version).ok());
  EXPECT_EQ(read_segment_object(*segments, version).value(), segment_content(version));
}

TEST(SegmentDamage, ARecordOfAnotherObjectIsRefused) {
  MemoryDisk disk;
  const ObjectVersion a = segment_object(1, 100);
  const ObjectVersion b(a.store(), a.key(), ObjectIdentity("later"), a.size());
  {
    const auto segments = open_segments(disk);
    ASSERT_TRUE(put_segment_object(*segments, a).ok());
    ASSERT_TRUE(put_segment_object(*segments, b).ok());
  }
  const std::string data = segment_file_content(disk, segment_file(0, "seg"));
  std::string header = data.substr(0, 192);
  // Sound, but in the place of the other.
  write_segment_file(disk, segment_file(0, "seg"), kSegmentPageBytes, header);
  const auto segments = open_segments(disk);
  EXPECT_TRUE(segments->load(a));
  EXPECT_EQ(segments->load(b).error(), StatusCode::kCorruption);
  ASSERT_EQ(segments.damage->size(), 1U);
  EXPECT_EQ(segments.damage->front().what,
            "record at byte 4096: it is not the record that the index names");
  // Sound, and with the digest of the other.
  auto* const bytes = reinterpret_cast<std::byte*>(header.data());
  std::ranges::copy(b.digest().bytes, bytes + 16);
  const std::uint32_t before = crc32c(as_bytes(header).first(52));
  store_little_endian(bytes + 52, crc32c(as_bytes(header).subspan(56), before));
  write_segment_file(disk, segment_file(0, "seg"), kSegmentPageBytes, header);
  EXPECT_EQ(segments->load(b).error(), StatusCode::kCorruption);
  EXPECT_EQ(segments->version_of(b.digest()).error(), StatusCode::kCorruption);
  EXPECT_EQ(segments.damage->size(), 3U);
}

TEST(SegmentDamage, AKillBeforeTheFirstRecordIsNormal) {
  MemoryDisk disk;
  ASSERT_TRUE(disk.make_directories(std::string(kSegmentCache) + "/segments").ok());
  const SegmentBlock header = encode_segment_index_header(0);
  for (const std::size_t size : {0, 1, 63, 64}) {
    for (const bool has_data : {false, true}) {
      write_segment_file(disk, segment_file(0, "idx"), 0, as_text(header).substr(0, size));
      if (has_data) write_segment_file(disk, segment_file(0, "seg"), 0, "");
      EXPECT_TRUE(open_segments(disk).damage->empty()) << size;
      EXPECT_FALSE(disk.stat(segment_file(0, "idx")));
      EXPECT_FALSE(disk.stat(segment_file(0, "seg")));
    }
  }
}

TEST(SegmentDamage, ATornTailIsNormal) {
  MemoryDisk disk;
  put_three_segment_objects(disk);
  const std::string path = segment_file(0, "idx");
  for (std::uint64_t size = 255; size > 64; --size) {
    ASSERT_TRUE(disk.open(path, OpenMode::kReadWrite).value()->truncate(size).ok());
    const auto segments = open_segments(disk);
    ASSERT_TRUE(segments.damage->empty());
    ASSERT_EQ(segments->usage().records, size / 64 - 1);
    // Without a live record the segment goes.
    if (size < 128) break;
  }
  EXPECT_FALSE(disk.stat(path));
  EXPECT_FALSE(disk.stat(segment_file(0, "seg")));
}

TEST(SegmentDamage, ZerosAndCutsAreReported) {
  const std::string index_path = segment_file(0, "idx");
  const std::string data_path = segment_file(0, "seg");
  const auto damage_after = [](auto spoil) {
    MemoryDisk disk;
    put_three_segment_objects(disk);
    spoil(disk);
    const auto segments = open_segments(disk);
    EXPECT_EQ(segments->usage().records, 3 - std::min<std::size_t>(3, segments.damage->size()));
    return segments.damage->empty() ? SegmentDamage{} : segments.damage->front();
  };
  const auto zeros = damage_after(
      [&](Disk& disk) { write_segment_file(disk, index_path, 128, std::string(64, '\0')); });
  EXPECT_EQ(zeros.what, "entry 1: it is all zeros");
  const auto cut = damage_after([&](Disk& disk) {
    ASSERT_TRUE(disk.open(data_path, OpenMode::kReadWrite).value()->truncate(9000).ok());
  });
  EXPECT_NE(cut.what.find("the segment at 9000"), std::string::npos) << cut.what;
  const auto no_data = damage_after([&](Disk& disk) { ASSERT_TRUE(disk.remove(data_path).ok()); });
  EXPECT_EQ(no_data.path, index_path);
}

TEST(SegmentDamage, ASegmentWithoutIndexIsReportedAndGoes) {
  MemoryDisk disk;
  put_three_segment_objects(disk);
  ASSERT_TRUE(disk.remove(segment_file(0, "idx")).ok());
  const auto segments = open_segments(disk);
  ASSERT_EQ(segments.damage->size(), 1U);
  EXPECT_EQ(segments.damage->front().path, segment_file(0, "seg"));
  EXPECT_FALSE(disk.stat(segment_file(0, "seg")));
}

TEST(SegmentDamage, ALaterFormatIsRefusedAndKept) {
  MemoryDisk disk;
  put_three_segment_objects(disk);
  // Rubbish that a start would clear away.
  write_segment_file(disk, segment_file(1, "seg"), 0, "data of something new");
  std::string header = segment_file_content(disk, segment_file(0, "idx")).substr(0, 64);
  auto* const bytes = reinterpret_cast<std::byte*>(header.data());
  store_little_endian(bytes + 8, std::uint32_t{2});
  store_little_endian(bytes + 60, crc32c(as_bytes(header).first(60)));
  write_segment_file(disk, segment_file(0, "idx"), 0, header);
  const auto refused = try_open_segments(disk);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), StatusCode::kUnsupported);
  EXPECT_NE(refused.error().message().find(segment_file(0, "idx")), std::string::npos);
  EXPECT_TRUE(disk.stat(segment_file(0, "idx")));
  EXPECT_TRUE(disk.stat(segment_file(0, "seg")));
  EXPECT_TRUE(disk.stat(segment_file(1, "seg")));
}

TEST(SegmentDamage, AStartFreesWhatAKillLeft) {
  MemoryDisk disk;
  const std::string path = segment_file(0, "seg");
  const ObjectVersion kept = segment_object(1, 100);
  {
    FaultyDisk faulty(disk);
    const auto segments = open_segments(faulty);
    ASSERT_TRUE(put_segment_object(*segments, segment_object(0, 500'000)).ok());
    ASSERT_TRUE(put_segment_object(*segments, kept).ok());
    ASSERT_TRUE(put_segment_object(*segments, segment_object(2, 500'000)).ok());
    faulty.set_fault([](const DiskCall& call) {
      return call.operation == DiskOperation::kPunch ? EOPNOTSUPP : 0;
    });
    ASSERT_TRUE(segments->remove(segment_object(0, 500'000).digest()).ok());
    ASSERT_TRUE(segments->remove(segment_object(2, 500'000).digest()).ok());
    EXPECT_EQ(segments->usage().unfreed_bytes, 2U * 123 * kSegmentPageBytes);
  }
  EXPECT_GT(disk.stat(path).value().allocated_bytes, 1'000'000U);
  const auto segments = open_segments(disk);
  EXPECT_LT(disk.stat(path).value().allocated_bytes, 10'000U);
  EXPECT_EQ(read_segment_object(*segments, kept).value(), segment_content(kept));
}

TEST(SegmentDamage, OfTwoRecordsTheNewerIsFound) {
  MemoryDisk disk;
  const ObjectVersion version = segment_object(0, 100);
  {
    const auto segments = open_segments(disk);
    ASSERT_TRUE(put_segment_object(*segments, version).ok());
    ASSERT_TRUE(put_segment_object(*segments, segment_object(1, 100)).ok());
  }
  const std::string index = segment_file_content(disk, segment_file(0, "idx"));
  const std::string data = segment_file_content(disk, segment_file(0, "seg"));
  {
    const auto segments = open_segments(disk);
    ASSERT_TRUE(segments->remove(version.digest()).ok());
    ASSERT_TRUE(put_segment_object(*segments, version).ok());
  }
  // A power loss undoes the removal.
  write_segment_file(disk, segment_file(0, "idx"), 0, index);
  write_segment_file(disk, segment_file(0, "seg"), 0, data);
  {
    const auto segments = open_segments(disk);
    EXPECT_EQ(segments->usage().records, 2U);
    EXPECT_EQ(segments->usage().bytes, 2U * kSegmentPageBytes);
    EXPECT_EQ(segments->load(version).value().place.segment, 1U);
    EXPECT_TRUE(segments.damage->empty());
    ASSERT_TRUE(segments->remove(version.digest()).ok());
  }
  // The older one does not come back.
  EXPECT_EQ(open_segments(disk)->usage().records, 1U);
}

TEST(SegmentDamage, APowerLossBringsNoWrongByte) {
  std::uint64_t found = 0;
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    MemoryDisk disk;
    for (int boot = 0; boot < 4; ++boot) {
      const auto segments = open_segments(disk, kShortSegments);
      for (int step = 0; step < 30; ++step) {
        const std::uint64_t n = random() % 20;
        const ObjectVersion version = segment_object(n, n * 700);
        const auto content = read_segment_object(*segments, version);
        if (content) {
          ASSERT_EQ(*content, segment_content(version));
          ++found;
          if (random() % 3 == 0) {
            ASSERT_TRUE(segments->remove(version.digest()).ok());
          }
          continue;
        }
        if (content.error() == StatusCode::kCorruption) {
          ++lost;
          ASSERT_TRUE(segments->remove(version.digest()).ok());
        } else {
          ASSERT_EQ(content.error(), StatusCode::kNotFound) << content.error().to_string();
        }
        ASSERT_TRUE(put_segment_object(*segments, version).ok());
        ASSERT_EQ(read_segment_object(*segments, version).value(), segment_content(version));
      }
      disk.simulate_power_loss(seed * 10 + static_cast<std::uint64_t>(boot));
    }
  }
  EXPECT_GT(found, 500U);
  EXPECT_GT(lost, 50U);
}

}  // namespace
}  // namespace millrace
