// Segments on disks whose calls fail, and under those who do two things at once.

#include <cerrno>
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "cache/segment_store.h"
#include "platform/faulty_disk.h"
#include "platform/memory_disk.h"
#include "tests/cache/segment_objects.h"

namespace millrace {
namespace {

constexpr SegmentOptions kSmallSegments = {.segment_bytes_max = 32 * kKiB, .open_files_max = 4};

// All that is found is right, and the store takes new objects.
void expect_usable_segments(SegmentStoreUnderTest& segments) {
  for (std::uint64_t n = 0; n < 12; ++n) {
    const ObjectVersion version = segment_object(n, n * 3000);
    auto content = read_segment_object(*segments, version);
    if (!content) {
      if (content.error() == StatusCode::kCorruption) {
        ASSERT_TRUE(segments->remove(version.digest()).ok());
      }
      ASSERT_TRUE(put_segment_object(*segments, version).ok());
      content = read_segment_object(*segments, version);
    }
    ASSERT_TRUE(content) << content.error().to_string();
    ASSERT_EQ(*content, segment_content(version));
  }
  ASSERT_EQ(segments->usage().records, 12U);
}

// Opens, puts and removes; what fails leaves things as they were.
void use_failing_segments(Disk& disk) {
  auto opened = try_open_segments(disk, kSmallSegments);
  if (!opened) return;
  SegmentStore& store = **opened;
  for (std::uint64_t n = 0; n < 8; ++n) {
    const ObjectVersion version = segment_object(n, n * 3000);
    const bool was_there = store.contains(version.digest());
    const Status status = n % 3 == 0 && was_there ? store.remove(version.digest())
                                                  : put_segment_object(store, version);
    const bool removed = n % 3 == 0 && was_there && status.ok();
    ASSERT_EQ(store.contains(version.digest()), status.ok() ? !removed : was_there);
    const auto content = read_segment_object(store, version);
    if (content) {
      ASSERT_EQ(*content, segment_content(version));
    }
  }
}

TEST(SegmentFaults, EveryCallMayFail) {
  for (const int error : {EIO, ENOSPC}) {
    for (const bool for_ever : {false, true}) {
      std::uint64_t faults = 1;
      std::uint64_t call = 0;
      for (; faults > 0; ++call) {
        SCOPED_TRACE("call " + std::to_string(call) + (for_ever ? " and all after it" : ""));
        MemoryDisk disk;
        FaultyDisk faulty(disk);
        // Some objects in several segments, from a run before.
        {
          const auto segments = open_segments(faulty, kSmallSegments);
          for (std::uint64_t n = 0; n < 12; n += 2) {
            ASSERT_TRUE(put_segment_object(*segments, segment_object(n, n * 3000)).ok());
          }
        }
        // With something to repair.
        flip_segment_bit(disk, segment_file(0, "idx"), 64 * 8);
        faulty.set_fault(fail_nth_call(call, error, for_ever));
        use_failing_segments(faulty);
        if (::testing::Test::HasFatalFailure()) return;
        faults = faulty.faults();
        faulty.set_fault({});
        auto segments = open_segments(faulty, kSmallSegments);
        expect_usable_segments(segments);
        if (::testing::Test::HasFatalFailure()) return;
      }
      EXPECT_GT(call, 40U);
    }
  }
}

TEST(SegmentFaults, TheStoreOutlivesThem) {
  for (std::uint64_t call = 0; call < 40; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    MemoryDisk disk;
    FaultyDisk faulty(disk);
    auto segments = open_segments(faulty, kSmallSegments);
    faulty.set_fault(fail_nth_call(call, EIO, call % 2 == 0));
    for (std::uint64_t n = 0; n < 8; ++n) {
      const ObjectVersion version = segment_object(n, n * 3000);
      const Status put = put_segment_object(*segments, version);
      ASSERT_EQ(segments->contains(version.digest()), put.ok());
      if (put.ok() && n % 2 == 0) (void)segments->remove(version.digest());
    }
    faulty.set_fault({});
    expect_usable_segments(segments);
    EXPECT_TRUE(segments.damage->empty());
    auto again = open_segments(faulty, kSmallSegments);
    expect_usable_segments(again);
  }
}

// Does something else in the middle of the next call of a kind.
void interrupt_segments(FaultyDisk& faulty, DiskOperation operation, std::function<void()> other) {
  auto done = std::make_shared<bool>(false);
  faulty.set_fault([=](const DiskCall& call) {
    if (call.operation == operation && call.path.ends_with(".seg") && !std::exchange(*done, true)) {
      other();
    }
    return 0;
  });
}

TEST(SegmentRaces, OfTwoPutsOneStays) {
  MemoryDisk disk;
  FaultyDisk faulty(disk);
  const auto segments = open_segments(faulty);
  const ObjectVersion version = segment_object(1, 100);
  interrupt_segments(faulty, DiskOperation::kWrite,
                     [&] { EXPECT_TRUE(put_segment_object(*segments, version).ok()); });
  ASSERT_TRUE(put_segment_object(*segments, version).ok());
  EXPECT_EQ(segments->usage().records, 1U);
  EXPECT_EQ(segments->usage().bytes, kSegmentPageBytes);
  EXPECT_LT(disk.stat(segment_file(0, "seg")).value().allocated_bytes, kSegmentPageBytes);
  EXPECT_EQ(read_segment_object(*segments, version).value(), segment_content(version));
  const auto again = open_segments(disk);
  EXPECT_EQ(again->usage().records, 1U);
  EXPECT_EQ(read_segment_object(*again, version).value(), segment_content(version));
}

TEST(SegmentRaces, ARecordRemovedWhileItIsReadIsAbsentAndNotDamaged) {
  // With another record in the segment, and as the last one of it.
  for (const bool last : {false, true}) {
    MemoryDisk disk;
    FaultyDisk faulty(disk);
    const ObjectVersion version = segment_object(1, 100);
    {
      const auto before = open_segments(faulty);
      ASSERT_TRUE(put_segment_object(*before, version).ok());
      if (!last) {
        ASSERT_TRUE(put_segment_object(*before, segment_object(2, 100)).ok());
      }
    }
    const auto segments = open_segments(faulty);
    for (const DiskOperation operation : {DiskOperation::kOpen, DiskOperation::kRead}) {
      const auto remove = [&] { (void)segments->remove(version.digest()); };
      interrupt_segments(faulty, operation, remove);
      EXPECT_EQ(segments->load(version).error(), StatusCode::kNotFound);
      EXPECT_FALSE(segments->contains(version.digest()));
      faulty.set_fault({});
      ASSERT_TRUE(put_segment_object(*segments, version).ok());
    }
    EXPECT_TRUE(segments.damage->empty());
  }
}

TEST(SegmentFaults, TheNextPutTakesThePlaceOfOneThatFailed) {
  for (const char* extension : {".seg", ".idx"}) {
    MemoryDisk disk;
    FaultyDisk faulty(disk);
    const auto segments = open_segments(faulty);
    ASSERT_TRUE(put_segment_object(*segments, segment_object(1, 10)).ok());
    faulty.set_fault([=](const DiskCall& call) {
      return call.operation == DiskOperation::kWrite && call.path.ends_with(extension) ? EIO : 0;
    });
    EXPECT_EQ(put_segment_object(*segments, segment_object(2, 50'000)), StatusCode::kIoError);
    faulty.set_fault({});
    const ObjectVersion version = segment_object(3, 30'000);
    ASSERT_TRUE(put_segment_object(*segments, version).ok());
    const SmallObject object = segments->load(version).value();
    EXPECT_EQ(object.place.page, 1U);
    EXPECT_EQ(object.place.slot, 1U);
    EXPECT_LE(disk.stat(segment_file(0, "seg")).value().allocated_bytes, 35'000U);
    EXPECT_EQ(segments->usage().unfreed_bytes, 0U);
    EXPECT_TRUE(open_segments(disk).damage->empty());
  }
}

TEST(SegmentFaults, AReadThatFailsIsNoDamage) {
  MemoryDisk disk;
  put_three_segment_objects(disk);
  FaultyDisk faulty(disk);
  const auto segments = open_segments(faulty);
  faulty.set_fault(fail_nth_call(0, EIO, true));
  EXPECT_EQ(segments->load(three_segment_objects()[0]).error(), StatusCode::kIoError);
  EXPECT_TRUE(segments.damage->empty());
  faulty.set_fault({});
  EXPECT_TRUE(segments->load(three_segment_objects()[0]));
}

TEST(SegmentFaults, AReadOnlyDiskStillServes) {
  MemoryDisk disk;
  put_three_segment_objects(disk);
  FaultyDisk faulty(disk);
  faulty.set_fault(read_only_disk());
  const auto segments = open_segments(faulty);
  for (const ObjectVersion& version : three_segment_objects()) {
    EXPECT_EQ(read_segment_object(*segments, version).value(), segment_content(version));
    EXPECT_EQ(segments->remove(version.digest()), StatusCode::kIoError);
    EXPECT_TRUE(segments->contains(version.digest()));
  }
  EXPECT_EQ(put_segment_object(*segments, segment_object(9, 9)), StatusCode::kIoError);
}

TEST(SegmentFaults, AFullDiskTakesObjectsAgainWhenThereIsSpace) {
  MemoryDisk disk(200 * kKiB);
  const auto segments = open_segments(disk, kSmallSegments);
  std::uint64_t n = 0;
  while (put_segment_object(*segments, segment_object(n, 20'000)).ok())
    ++n;
  ASSERT_GT(n, 5U);
  EXPECT_EQ(put_segment_object(*segments, segment_object(n, 20'000)),
            StatusCode::kResourceExhausted);
  ASSERT_TRUE(segments->remove(segment_object(0, 20'000).digest()).ok());
  ASSERT_TRUE(segments->remove(segment_object(1, 20'000).digest()).ok());
  const ObjectVersion version = segment_object(n, 20'000);
  ASSERT_TRUE(put_segment_object(*segments, version).ok());
  EXPECT_EQ(read_segment_object(*segments, version).value(), segment_content(version));
}

}  // namespace
}  // namespace millrace
