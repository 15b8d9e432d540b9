// Object files on disks that fail, and that lose their power.

#include <cerrno>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "cache/object_file.h"
#include "platform/faulty_disk.h"
#include "platform/memory_disk.h"
#include "tests/cache/stored_content.h"

namespace millrace {
namespace {

const std::string kObjectStem = "/c/object";

Status write_stored_units(ObjectFile& file, std::string_view content, UnitRange units) {
  return file.write(units, as_bytes(stored_part(content, units)), stored_checksums(content, units),
                    WrittenPages::kPassedBy);
}

// Whether the bytes of a unit are what was written.
bool holds_unit(ObjectFile& file, std::string_view content, std::uint32_t unit) {
  std::string bytes(stored_part(content, {unit, 1}).size(), '?');
  const auto size =
      file.file()->read_at(unit * kUnitBytes, std::as_writable_bytes(std::span(bytes)));
  return size && *size == bytes.size() && bytes == stored_part(content, {unit, 1});
}

// What is recorded has the right checksum. Returns how many units are recorded and also right.
std::size_t count_right_units(ObjectFile& file, std::string_view content) {
  const Result<UnitRecords> records = file.read_records();
  EXPECT_TRUE(records);
  std::size_t right = 0;
  for (const std::uint32_t unit : records->recorded) {
    std::uint32_t checksum = 0;
    EXPECT_TRUE(file.read_checksums({unit, 1}, {&checksum, 1}).ok());
    EXPECT_EQ(checksum, stored_checksums(content, {unit, 1}).front()) << "unit " << unit;
    if (holds_unit(file, content, unit)) ++right;
  }
  return right;
}

// A life of an object file; stops at the first failure, as the cache would try again later.
Status use_object_file(Disk& disk, const ObjectVersion& version, std::string_view content) {
  MR_ASSIGN_OR_RETURN(const auto file, ObjectFile::create(disk, kObjectStem, version));
  MR_RETURN_IF_ERROR(write_stored_units(*file, content, {0, 4}));
  MR_RETURN_IF_ERROR(write_stored_units(*file, content, {6, 3}));
  MR_RETURN_IF_ERROR(file->forget({1, 2}));
  MR_RETURN_IF_ERROR(file->mark_handed_out());
  MR_RETURN_IF_ERROR(write_stored_units(*file, content, {1, 1}));
  return file->distrust({7, 1});
}

TEST(ObjectFileFaults, AfterAnyFailureUnitsAreRightOrAbsent) {
  const ObjectVersion version = stored_version("a", 8 * kUnitBytes + 100);
  const std::string content = stored_content(version);
  for (const int error : {EIO, ENOSPC}) {
    for (const bool for_ever : {false, true}) {
      std::uint64_t call = 0;
      for (std::uint64_t faults = 1; faults > 0; ++call) {
        SCOPED_TRACE("call " + std::to_string(call) + (for_ever ? " and all after it" : ""));
        MemoryDisk disk;
        ASSERT_TRUE(disk.make_directories("/c").ok());
        FaultyDisk faulty(disk);
        faulty.set_fault(fail_nth_call(call, error, for_ever));
        const Status status = use_object_file(faulty, version, content);
        faults = faulty.faults();
        ASSERT_EQ(status.ok(), faults == 0);
        auto file = ObjectFile::open(disk, kObjectStem, version);
        if (!file) {
          const StatusCode code = file.error().code();
          ASSERT_TRUE(code == StatusCode::kNotFound || code == StatusCode::kCorruption);
          ASSERT_TRUE(use_object_file(disk, version, content).ok());
          file = ObjectFile::open(disk, kObjectStem, version);
        }
        ASSERT_TRUE(file);
        ASSERT_EQ(count_right_units(**file, content), (*file)->read_records()->recorded.size());
        ASSERT_TRUE(write_stored_units(**file, content, {0, 9}).ok());
        ASSERT_EQ(count_right_units(**file, content), 9u);
      }
      EXPECT_GT(call, 14u);
    }
  }
}

TEST(ObjectFileFaults, AFailedOpenIsNoDamage) {
  const ObjectVersion version = stored_version("a", 3 * kUnitBytes);
  const std::string content = stored_content(version);
  MemoryDisk disk;
  ASSERT_TRUE(disk.make_directories("/c").ok());
  ASSERT_TRUE(
      write_stored_units(**ObjectFile::create(disk, kObjectStem, version), content, {0, 3}).ok());
  FaultyDisk faulty(disk);
  std::uint64_t call = 0;
  for (std::uint64_t faults = 1; faults > 0; ++call) {
    faulty.set_fault(fail_nth_call(call, EIO));
    const std::uint64_t before = faulty.faults();
    const auto file = ObjectFile::open(faulty, kObjectStem, version);
    faults = faulty.faults() - before;
    if (faults > 0) {
      ASSERT_EQ(file.error().code(), StatusCode::kIoError);
    }
  }
  EXPECT_EQ(call, 5u) << "two opens, a read, a size, and the one that succeeds";
}

TEST(ObjectFileFaults, APowerLossLeavesNoRecordThatIsWrong) {
  const ObjectVersion version = stored_version("a", 8 * kUnitBytes + 100);
  const ObjectVersion other = stored_version("b", 6 * kUnitBytes);
  const std::string content = stored_content(version);
  const std::string other_content = stored_content(other);
  std::size_t opened = 0;
  std::size_t lost = 0;
  std::size_t right = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    MemoryDisk disk;
    ASSERT_TRUE(disk.make_directories("/c").ok());
    // Under the same name another object, so that its pieces may come back.
    ASSERT_TRUE(use_object_file(disk, other, other_content).ok());
    if (random() % 2 == 0) disk.simulate_power_loss(random());
    ASSERT_TRUE(use_object_file(disk, version, content).ok());
    if (random() % 2 == 0) {
      ASSERT_TRUE(disk.sync_directory("/c").ok());
    }
    disk.simulate_power_loss(random());
    const auto file = ObjectFile::open(disk, kObjectStem, version);
    if (!file) {
      const StatusCode code = file.error().code();
      ASSERT_TRUE(code == StatusCode::kNotFound || code == StatusCode::kCorruption);
      continue;
    }
    ++opened;
    const std::size_t recorded = (*file)->read_records()->recorded.size();
    const std::size_t held = count_right_units(**file, content);
    right += held;
    lost += recorded - held;
    // What is written over it is right again.
    ASSERT_TRUE(write_stored_units(**file, content, {0, 9}).ok());
    ASSERT_EQ(count_right_units(**file, content), 9u);
  }
  // The seeds reach what they are for.
  EXPECT_GT(opened, 20u);
  EXPECT_GT(right, 20u);
  EXPECT_GT(lost, 20u) << "units whose record outlived their bytes: the verifier finds those";
}

}  // namespace
}  // namespace millrace
