// A large object on the disk: what is recorded is right, or found out.
#include "cache/object_file.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/little_endian.h"
#include "cache/object_map_format.h"
#include "platform/memory_disk.h"
#include "platform/posix_disk.h"
#include "tests/cache/stored_content.h"

namespace millrace {
namespace {

using FilePtr = std::unique_ptr<ObjectFile>;
using Units = std::vector<std::uint32_t>;

class ObjectFileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(disk.make_directories("/c").ok()); }

  FilePtr create() {
    auto file = ObjectFile::create(disk, stem, version);
    EXPECT_TRUE(file);
    return *std::move(file);
  }
  FilePtr reopen() {
    auto file = ObjectFile::open(disk, stem, version);
    EXPECT_TRUE(file) << file.error().to_string();
    return file ? *std::move(file) : nullptr;
  }
  StatusCode open_code() {
    auto file = ObjectFile::open(disk, stem, version);
    return file ? StatusCode::kOk : file.error().code();
  }
  Status write(ObjectFile& file, UnitRange units) {
    return file.write(units, as_bytes(stored_part(content, units)),
                      stored_checksums(content, units), WrittenPages::kPassedBy);
  }
  void expect_right(ObjectFile& file, UnitRange units) {
    std::string bytes(bytes_of(units, version.size()).length, '?');
    const auto size =
        file.file()->read_at(units.first * kUnitBytes, std::as_writable_bytes(std::span(bytes)));
    ASSERT_EQ(*size, bytes.size());
    EXPECT_EQ(bytes, stored_part(content, units));
    std::vector<std::uint32_t> checksums(units.count);
    ASSERT_TRUE(file.read_checksums(units, checksums).ok());
    EXPECT_EQ(checksums, stored_checksums(content, units));
  }
  void flip(const std::string& path, std::uint64_t bit) {
    const auto file = *disk.open(path, OpenMode::kReadWrite);
    std::byte byte{};
    ASSERT_EQ(*file->read_at(bit / 8, {&byte, 1}), 1u);
    byte ^= std::byte{1} << static_cast<int>(bit % 8);
    ASSERT_TRUE(file->write_at(bit / 8, {&byte, 1}).ok());
  }
  void resize(const std::string& path, std::uint64_t size) {
    ASSERT_TRUE((*disk.open(path, OpenMode::kReadWrite))->truncate(size).ok());
  }

  MemoryDisk disk;
  const std::string stem = "/c/object";
  const ObjectVersion version = stored_version("a", 5 * kUnitBytes + 7);
  const std::string content = stored_content(version);
};

TEST_F(ObjectFileTest, BeginsEmptyAndSparse) {
  const FilePtr file = create();
  EXPECT_EQ(disk.stat("/c/object.data")->size, version.size());
  EXPECT_EQ(disk.stat("/c/object.data")->allocated_bytes, 0u);
  EXPECT_EQ(disk.stat("/c/object.map")->size, kMapHeaderAlignment + 7 * kMapRecordBytes);
  EXPECT_EQ(file->base(), 0u);
  const UnitRecords records = *reopen()->read_records();
  EXPECT_TRUE(records.recorded.empty());
  EXPECT_TRUE(records.damaged.empty());
  EXPECT_FALSE(records.handed_out);
  std::uint32_t checksum = 0;
  EXPECT_EQ(file->read_checksums({0, 1}, {&checksum, 1}), StatusCode::kCorruption);
}

TEST_F(ObjectFileTest, WhatWasWrittenIsThereAgain) {
  {
    const FilePtr file = create();
    ASSERT_TRUE(write(*file, {1, 2}).ok());
    ASSERT_TRUE(write(*file, {5, 1}).ok());
    expect_right(*file, {1, 2});
  }
  const FilePtr file = reopen();
  EXPECT_EQ(file->read_records()->recorded, (Units{1, 2, 5}));
  expect_right(*file, {1, 2});
  expect_right(*file, {5, 1});
  EXPECT_EQ(disk.stat("/c/object.data")->allocated_bytes, 2 * kUnitBytes + 7);
  EXPECT_EQ(read_object_map_version(disk, stem)->digest(), version.digest());
}

TEST_F(ObjectFileTest, ForgettingFreesSpaceAndDistrustDoesNot) {
  const FilePtr file = create();
  ASSERT_TRUE(write(*file, {0, 6}).ok());
  ASSERT_TRUE(file->forget({1, 2}).ok());
  ASSERT_TRUE(file->distrust({5, 1}).ok());
  EXPECT_EQ(reopen()->read_records()->recorded, (Units{0, 3, 4}));
  EXPECT_EQ(disk.stat("/c/object.data")->allocated_bytes, version.size() - 2 * kUnitBytes);
  EXPECT_EQ(disk.stat("/c/object.data")->size, version.size());
  ASSERT_TRUE(file->forget({5, 1}).ok());
  EXPECT_EQ(disk.stat("/c/object.data")->size, version.size());
  ASSERT_TRUE(write(*file, {0, 6}).ok());
  expect_right(*reopen(), {0, 6});
}

TEST_F(ObjectFileTest, TheMarkOfAHandedOutFileStays) {
  {
    const FilePtr file = create();
    ASSERT_TRUE(write(*file, {0, 6}).ok());
    EXPECT_FALSE(*file->is_handed_out());
    ASSERT_TRUE(file->mark_handed_out().ok());
    EXPECT_TRUE(*file->is_handed_out());
    ASSERT_TRUE(file->forget({0, 6}).ok());
  }
  const UnitRecords records = *reopen()->read_records();
  EXPECT_TRUE(records.handed_out);
  EXPECT_TRUE(records.recorded.empty());
  EXPECT_TRUE(records.damaged.empty());
}

TEST_F(ObjectFileTest, ADamagedMarkIsAMark) {
  ASSERT_TRUE(create()->mark_handed_out().ok());
  for (std::uint64_t bit = 0; bit < 64; ++bit) {
    const std::uint64_t at = (kMapHeaderAlignment + 6 * kMapRecordBytes) * 8 + bit;
    flip("/c/object.map", at);
    const FilePtr file = reopen();
    EXPECT_TRUE(*file->is_handed_out());
    const UnitRecords records = *file->read_records();
    EXPECT_TRUE(records.handed_out);
    EXPECT_EQ(records.damaged, Units{6});
    flip("/c/object.map", at);
  }
}

TEST_F(ObjectFileTest, EveryFlipInTheMapIsNoticed) {
  ASSERT_TRUE(write(*create(), {0, 6}).ok());
  for (std::uint64_t bit = 0; bit < kMapHeaderAlignment * 8; bit += 61) {
    flip("/c/object.map", bit);
    ASSERT_EQ(open_code(), StatusCode::kCorruption) << bit;
    EXPECT_EQ(read_object_map_version(disk, stem).error().code(), StatusCode::kCorruption);
    flip("/c/object.map", bit);
  }
  for (std::uint64_t bit = 0; bit < 6 * kMapRecordBytes * 8; ++bit) {
    const auto unit = static_cast<std::uint32_t>(bit / 64);
    flip("/c/object.map", kMapHeaderAlignment * 8 + bit);
    const FilePtr file = reopen();
    const UnitRecords records = *file->read_records();
    ASSERT_EQ(records.damaged, Units{unit});
    ASSERT_EQ(records.recorded.size(), 5u);
    std::uint32_t checksum = 0;
    ASSERT_EQ(file->read_checksums({unit, 1}, {&checksum, 1}), StatusCode::kCorruption);
    flip("/c/object.map", kMapHeaderAlignment * 8 + bit);
  }
}

TEST_F(ObjectFileTest, AMapThatLostItsEndHasNoRecordsThere) {
  ASSERT_TRUE(write(*create(), {0, 6}).ok());
  for (std::uint64_t lost = 1; lost <= 7 * kMapRecordBytes; ++lost) {
    const std::uint64_t left = 7 * kMapRecordBytes - lost;
    resize("/c/object.map", kMapHeaderAlignment + left);
    const UnitRecords records = *reopen()->read_records();
    ASSERT_EQ(records.recorded.size(), std::min<std::uint64_t>(left / kMapRecordBytes, 6)) << lost;
    // The record that was torn is either gone or found out.
    ASSERT_LE(records.damaged.size(), 1u);
    ASSERT_FALSE(records.handed_out);
  }
  for (const std::uint64_t size : {4095, 1}) {
    resize("/c/object.map", size);
    ASSERT_EQ(open_code(), StatusCode::kCorruption);
  }
  resize("/c/object.map", 0);
  ASSERT_EQ(open_code(), StatusCode::kNotFound) << "a kill left a map without a header";
}

TEST_F(ObjectFileTest, TheDataFileGetsItsSizeBack) {
  ASSERT_TRUE(write(*create(), {0, 6}).ok());
  for (const std::uint64_t size : {std::uint64_t{0}, version.size() - 1, version.size() + 1}) {
    resize("/c/object.data", size);
    EXPECT_EQ(reopen()->read_records()->recorded.size(), 6u) << "the verifier will find out";
    EXPECT_EQ(disk.stat("/c/object.data")->size, version.size());
  }
}

TEST_F(ObjectFileTest, OneFileAloneIsNoObject) {
  EXPECT_EQ(open_code(), StatusCode::kNotFound);
  EXPECT_TRUE(ObjectFile::remove(disk, stem).ok());
  create();
  ASSERT_TRUE(disk.remove("/c/object.data").ok());
  EXPECT_EQ(open_code(), StatusCode::kCorruption);
  create();
  ASSERT_TRUE(disk.remove("/c/object.map").ok());
  EXPECT_EQ(open_code(), StatusCode::kNotFound);
  create();
  EXPECT_TRUE(ObjectFile::remove(disk, stem).ok());
  EXPECT_TRUE(disk.list("/c")->empty());
}

TEST_F(ObjectFileTest, AnotherObjectsMapIsRefused) {
  const ObjectVersion other = stored_version("b", version.size());
  ASSERT_TRUE(ObjectFile::create(disk, "/c/other", other));
  create();
  ASSERT_TRUE(disk.rename("/c/other.map", "/c/object.map", Replace::kAllowed).ok());
  const auto file = ObjectFile::open(disk, stem, version);
  EXPECT_EQ(file.error().code(), StatusCode::kCorruption);
  EXPECT_NE(file.error().message().find("'b'"), std::string::npos) << file.error().message();
}

TEST_F(ObjectFileTest, RecordsOfAnotherObjectOrUnitAreDamage) {
  ASSERT_TRUE(write(*create(), {0, 6}).ok());
  const ObjectVersion other = stored_version("b", version.size());
  const auto map = *disk.open("/c/object.map", OpenMode::kReadWrite);
  ASSERT_TRUE(
      map->write_at(kMapHeaderAlignment, encode_map_record(other.digest(), 0, 0x12345)).ok());
  ASSERT_TRUE(map->write_at(kMapHeaderAlignment + 3 * kMapRecordBytes,
                            encode_map_record(version.digest(), 4, 0x12345))
                  .ok());
  const UnitRecords records = *reopen()->read_records();
  EXPECT_EQ(records.damaged, (Units{0, 3}));
  EXPECT_EQ(records.recorded, (Units{1, 2, 4, 5}));
}

TEST_F(ObjectFileTest, ALaterFormatIsLeftAlone) {
  std::string header = *encode_map_header(version);
  auto* const bytes = reinterpret_cast<std::byte*>(header.data());
  store_little_endian(bytes + 8, std::uint32_t{2});
  store_little_endian(bytes + 12, std::uint32_t{0});
  store_little_endian(bytes + 12, crc32c(as_bytes(header)));
  create();
  ASSERT_TRUE(
      (*disk.open("/c/object.map", OpenMode::kReadWrite))->write_at(0, as_bytes(header)).ok());
  EXPECT_EQ(open_code(), StatusCode::kUnsupported);
  EXPECT_EQ(read_object_map_version(disk, stem).error().code(), StatusCode::kUnsupported);
}

TEST_F(ObjectFileTest, ANewFileLeavesReadersOfTheOldOneAlone) {
  const FilePtr old = create();
  ASSERT_TRUE(write(*old, {0, 6}).ok());
  const FilePtr file = create();
  EXPECT_TRUE(file->read_records()->recorded.empty());
  expect_right(*old, {0, 6});
  ASSERT_TRUE(ObjectFile::remove(disk, stem).ok());
  expect_right(*old, {0, 6});
}

TEST_F(ObjectFileTest, AKeyThatDoesNotFitIsRefusedBeforeAnythingIsTouched) {
  const ObjectVersion huge = stored_version(std::string(kMapHeaderBytesMax, 'k'), 10);
  ASSERT_TRUE(write(*create(), {0, 1}).ok());
  EXPECT_EQ(ObjectFile::create(disk, stem, huge).error().code(), StatusCode::kInvalidArgument);
  expect_right(*reopen(), {0, 1});
}

TEST(ObjectFileOnDisk, PagesThatAreFilledNeedNotComeFromTheDisk) {
  std::string directory = ::testing::TempDir() + "object_file_XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  PosixDisk disk;
  const ObjectVersion version = stored_version("o", 2 * kUnitBytes);
  const std::string content = stored_content(version);
  const auto file = ObjectFile::create(disk, directory + "/o", version);
  ASSERT_TRUE(file) << file.error().to_string();
  for (const std::uint32_t unit : {0u, 1u}) {
    const UnitRange units{unit, 1};
    ASSERT_TRUE((*file)
                    ->write(units, as_bytes(stored_part(content, units)),
                            stored_checksums(content, units),
                            unit == 0 ? WrittenPages::kFilled : WrittenPages::kPassedBy)
                    .ok());
  }
  std::string bytes(content.size(), '?');
  const MutableByteView into = std::as_writable_bytes(std::span(bytes));
  EXPECT_TRUE(*(*file)->read_now(0, into.first(kUnitBytes)));
  EXPECT_EQ(*(*file)->read(kUnitBytes, into.subspan(kUnitBytes)), kUnitBytes);
  EXPECT_EQ(bytes, content);
  std::filesystem::remove_all(directory);
}

// The records are read in pieces of 8192.
TEST(ObjectFileOnDisk, RecordsOfALargeObjectAreRead) {
  std::string directory = ::testing::TempDir() + "object_file_XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  PosixDisk disk;
  for (const std::uint32_t units : {8191u, 8192u, 8193u, 16384u, 20000u}) {
    const ObjectVersion version = stored_version("large", units * kUnitBytes);
    const auto file = ObjectFile::create(disk, directory + "/large", version);
    ASSERT_TRUE(file) << file.error().to_string();
    const std::string unit(kUnitBytes, 'u');
    Units written;
    for (const std::uint32_t at : {0u, 8190u, 8191u, 8192u, 16383u, 16384u, units - 1}) {
      if (at >= units || (!written.empty() && at <= written.back())) continue;
      const std::uint32_t checksum = at;
      ASSERT_TRUE(
          (*file)->write({at, 1}, as_bytes(unit), {&checksum, 1}, WrittenPages::kPassedBy).ok());
      written.push_back(at);
    }
    ASSERT_TRUE((*file)->mark_handed_out().ok());
    const UnitRecords records = *(*file)->read_records();
    EXPECT_EQ(records.recorded, written);
    EXPECT_TRUE(records.damaged.empty());
    EXPECT_TRUE(records.handed_out);
    for (const std::uint32_t at : written) {
      std::uint32_t checksum = 0;
      ASSERT_TRUE((*file)->read_checksums({at, 1}, {&checksum, 1}).ok());
      EXPECT_EQ(checksum, at);
    }
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace millrace
