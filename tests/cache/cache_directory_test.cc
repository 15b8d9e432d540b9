// One directory of the cache, below the cache itself.
#include "cache/cache_directory.h"

#include <span>
#include <string>

#include <gtest/gtest.h>

#include "base/log.h"
#include "base/manual_clock.h"
#include "platform/memory_disk.h"
#include "tests/cache/stored_content.h"

namespace millrace {
namespace {

class CacheDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override { open(); }

  void open() {
    directory.reset();
    auto opened = CacheDirectory::open(disk, {.path = "/cache"}, clock, metrics);
    ASSERT_TRUE(opened) << opened.error().to_string();
    directory = *std::move(opened);
  }
  void store_all(bool handed_out) {
    const auto stored = directory->create(version);
    ASSERT_TRUE(stored);
    const UnitRange all{0, unit_count(version.size())};
    ASSERT_TRUE(
        (*stored)
            ->write(all, as_bytes(content), stored_checksums(content, all), WrittenPages::kPassedBy)
            .ok());
    if (handed_out) {
      ASSERT_TRUE((*stored)->mark_handed_out().ok());
    }
  }
  std::string path(std::string_view extension) const {
    const std::string digest = version.digest().to_text();
    return "/cache/objects/" + digest.substr(0, 2) + "/" + digest + std::string(extension);
  }
  std::string read_all(DiskFile& file) {
    std::string bytes(version.size(), '?');
    EXPECT_TRUE(file.read_at(0, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  }

  MemoryDisk disk;
  ManualClock clock;
  Metrics metrics;
  LogCapture quiet;
  std::unique_ptr<CacheDirectory> directory;
  const ObjectVersion version = stored_version("a", 2 * kBlockBytes);
  const std::string content = stored_content(version);
};

TEST_F(CacheDirectoryTest, ANewOneMakesADirectoryForItsFirstObject) {
  open();
  EXPECT_TRUE(disk.list("/cache/objects")->empty());
  EXPECT_TRUE(directory->for_each_object([](auto...) { return true; }).ok());
  store_all(false);
  EXPECT_EQ(disk.list("/cache/objects")->size(), 1U);
  int objects = 0;
  EXPECT_TRUE(directory->for_each_object([&](auto...) { return ++objects > 0; }).ok());
  EXPECT_EQ(objects, 1);
}

TEST_F(CacheDirectoryTest, ABlockIsFreedByItself) {
  store_all(false);
  ASSERT_TRUE(directory->free_block(version.digest(), 1).ok());
  EXPECT_EQ(disk.stat(path(".data"))->allocated_bytes, kBlockBytes);
  EXPECT_EQ(directory->load(version).recorded.size(), kBlockUnits);
}

// Whoever got its descriptor may outlive the process that gave it.
TEST_F(CacheDirectoryTest, AFileThatWasHandedOutIsUnlinkedAndNeverPunched) {
  store_all(true);
  const auto holder = *disk.open(path(".data"), OpenMode::kRead);
  open();
  ASSERT_TRUE(directory->free_block(version.digest(), 0).ok());
  EXPECT_EQ(read_all(*holder), content);
  EXPECT_EQ(disk.stat(path(".data")).error().code(), StatusCode::kNotFound);
  EXPECT_EQ(disk.stat(path(".map")).error().code(), StatusCode::kNotFound);
  EXPECT_TRUE(directory->free_block(version.digest(), 1).ok()) << "it is free already";
}

TEST_F(CacheDirectoryTest, ADamagedMarkIsMadeAnew) {
  store_all(true);
  const std::uint64_t mark_at = disk.stat(path(".map"))->size - 8;
  const std::byte damage{0xff};
  ASSERT_TRUE(
      (*disk.open(path(".map"), OpenMode::kReadWrite))->write_at(mark_at, {&damage, 1}).ok());
  for (int run = 0; run < 3; ++run) {
    open();
    const CacheDirectory::Loaded loaded = directory->load(version);
    EXPECT_TRUE(loaded.handed_out) << "run " << run;
    EXPECT_EQ(loaded.recorded.size(), 2 * kBlockUnits);
  }
  EXPECT_EQ(
      metrics.counter(MetricId::kCacheBadUnits, {static_cast<std::size_t>(CacheDamage::kIndex)})
          .value(),
      1u)
      << "it is reported once";
}

TEST_F(CacheDirectoryTest, WhatLostItsDataOrItsMapIsFreed) {
  store_all(false);
  ASSERT_TRUE(disk.remove(path(".data")).ok());
  EXPECT_TRUE(directory->free_block(version.digest(), 0).ok());
  EXPECT_EQ(disk.stat(path(".map")).error().code(), StatusCode::kNotFound);
  store_all(false);
  ASSERT_TRUE(disk.remove(path(".map")).ok());
  EXPECT_TRUE(directory->free_block(version.digest(), 0).ok());
  EXPECT_EQ(disk.stat(path(".data")).error().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace millrace
