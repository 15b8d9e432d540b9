#include "platform/memory_disk.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr std::uint64_t kSeeds = 200;

void write(Disk& disk, const std::string& path, std::string_view text, bool sync) {
  const auto file = disk.open(path, OpenMode::kCreate).value();
  ASSERT_TRUE(file->write_at(0, as_bytes(text)).ok());
  if (sync) {
    ASSERT_TRUE(file->sync().ok());
  }
}

// The content, or "absent".
std::string content(Disk& disk, const std::string& path) {
  auto file = disk.open(path, OpenMode::kRead);
  if (!file) return "absent";
  std::string text((*file)->size().value(), '?');
  EXPECT_EQ((*file)->read_at(0, std::as_writable_bytes(std::span(text))).value(), text.size());
  return text;
}

TEST(MemoryDiskPowerLoss, KeepsWhatWasSynced) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    MemoryDisk disk;
    ASSERT_TRUE(disk.make_directories("/d").ok());
    write(disk, "/d/a", "synced", true);
    ASSERT_TRUE(disk.sync_directory("/d").ok());
    disk.simulate_power_loss(seed);
    ASSERT_EQ(content(disk, "/d/a"), "synced") << "seed " << seed;
  }
}

TEST(MemoryDiskPowerLoss, KeepsDirectoriesWhoseParentWasSynced) {
  int kept = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    MemoryDisk disk;
    ASSERT_TRUE(disk.make_directory("/synced").ok());
    ASSERT_TRUE(disk.sync_directory("/").ok());
    ASSERT_TRUE(disk.make_directory("/other").ok());
    disk.simulate_power_loss(seed);
    ASSERT_TRUE(disk.stat("/synced")) << "seed " << seed;
    kept += disk.stat("/other") ? 1 : 0;
  }
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, static_cast<int>(kSeeds));
}

TEST(MemoryDiskPowerLoss, LosesTearsAndGrowsWhatWasNot) {
  std::set<std::string> outcomes;
  const std::string text = std::string(512, 'x') + std::string(512, 'y');
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    MemoryDisk disk;
    write(disk, "/a", "", true);
    ASSERT_TRUE(disk.sync_directory("/").ok());
    write(disk, "/a", text, false);
    disk.simulate_power_loss(seed);
    outcomes.insert(content(disk, "/a"));
  }
  const std::string zeros(512, '\0');
  EXPECT_EQ(outcomes, (std::set<std::string>{"", text, text.substr(0, 512),
                                             zeros + text.substr(512), zeros + zeros}));
}

TEST(MemoryDiskPowerLoss, KeepsLosesAndTearsAPunch) {
  std::set<std::string> outcomes;
  const std::string x(512, 'x');
  const std::string zeros(512, '\0');
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    MemoryDisk disk;
    write(disk, "/a", x + x + x, true);
    ASSERT_TRUE(disk.sync_directory("/").ok());
    ASSERT_TRUE(disk.open("/a", OpenMode::kReadWrite).value()->punch(512, 5000).ok());
    EXPECT_EQ(disk.stat("/a").value().allocated_bytes, 512u);
    disk.simulate_power_loss(seed);
    outcomes.insert(content(disk, "/a"));
    const auto kept = std::ranges::count(content(disk, "/a"), 'x');
    EXPECT_EQ(disk.stat("/a").value().allocated_bytes, static_cast<std::uint64_t>(kept));
  }
  EXPECT_EQ(outcomes,
            (std::set<std::string>{x + x + x, x + zeros + zeros, x + zeros + x, x + x + zeros}));
}

TEST(MemoryDiskPowerLoss, ASyncedPunchStays) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    MemoryDisk disk;
    write(disk, "/a", "1234", true);
    ASSERT_TRUE(disk.sync_directory("/").ok());
    const auto file = disk.open("/a", OpenMode::kReadWrite).value();
    ASSERT_TRUE(file->punch(1, 2).ok());
    ASSERT_TRUE(file->sync().ok());
    disk.simulate_power_loss(seed);
    ASSERT_EQ(content(disk, "/a"), std::string("1\0\0"
                                               "4",
                                               4))
        << "seed " << seed;
    ASSERT_EQ(disk.stat("/a").value().allocated_bytes, 2u) << "seed " << seed;
  }
}

TEST(MemoryDiskPowerLoss, LocksAreGone) {
  MemoryDisk disk;
  auto before = disk.lock("/lock", "before");
  ASSERT_TRUE(before.has_value());
  ASSERT_TRUE(disk.sync_directory("/").ok());
  disk.simulate_power_loss(1);
  const auto after = disk.lock("/lock", "after");
  ASSERT_TRUE(after.has_value());
  // Letting go of what is lost does not let go of what is held.
  before->reset();
  EXPECT_EQ(disk.lock("/lock", "third").error().message(), "/lock is held by after");
}

TEST(MemoryDiskPowerLoss, ANameNeedsItsDirectorySynced) {
  std::set<std::string> outcomes;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    MemoryDisk disk;
    write(disk, "/a", "1", true);
    disk.simulate_power_loss(seed);
    outcomes.insert(content(disk, "/a"));
  }
  EXPECT_EQ(outcomes, (std::set<std::string>{"absent", "1"}));
}

TEST(MemoryDiskPowerLoss, ARenameIsAtomic) {
  std::set<std::string> outcomes;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    MemoryDisk disk;
    ASSERT_TRUE(disk.make_directories("/to").ok());
    write(disk, "/a", "new", true);
    write(disk, "/to/b", "old", true);
    ASSERT_TRUE(disk.sync_directory("/").ok());
    ASSERT_TRUE(disk.sync_directory("/to").ok());
    ASSERT_TRUE(disk.rename("/a", "/to/b", Replace::kAllowed).ok());
    disk.simulate_power_loss(seed);
    outcomes.insert(content(disk, "/a") + " " + content(disk, "/to/b"));
  }
  EXPECT_EQ(outcomes, (std::set<std::string>{"new old", "absent new"}));
}

TEST(MemoryDiskPowerLoss, ASyncBringsTheEarlierChangesOfItsNamesAlong) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    MemoryDisk disk;
    ASSERT_TRUE(disk.make_directories("/from").ok());
    ASSERT_TRUE(disk.make_directories("/to").ok());
    write(disk, "/from/a", "1", true);  // Its name in /from is never synced by itself.
    ASSERT_TRUE(disk.rename("/from/a", "/to/b", Replace::kAllowed).ok());
    ASSERT_TRUE(disk.sync_directory("/to").ok());
    disk.simulate_power_loss(seed);
    ASSERT_EQ(content(disk, "/to/b"), "1") << "seed " << seed;
    ASSERT_EQ(content(disk, "/from/a"), "absent") << "seed " << seed;
  }
}

TEST(MemoryDiskPowerLoss, TheSameSeedLeavesTheSameDisk) {
  const auto run = [](std::uint64_t seed) {
    MemoryDisk disk;
    std::string all;
    for (int i = 0; i < 20; ++i)
      write(disk, "/" + std::to_string(i), std::string(2000, 'z'), i % 3);
    disk.simulate_power_loss(seed);
    for (int i = 0; i < 20; ++i)
      all += content(disk, "/" + std::to_string(i)) + "|";
    return all;
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

TEST(MemoryDiskPowerLoss, OpenFilesAreDead) {
  MemoryDisk disk;
  const auto file = disk.open("/a", OpenMode::kCreate).value();
  disk.simulate_power_loss(1);
  EXPECT_EQ(file->write_at(0, as_bytes("x")).code(), StatusCode::kIoError);
  EXPECT_EQ(file->sync().code(), StatusCode::kIoError);
  EXPECT_EQ(file->size().error().code(), StatusCode::kIoError);
  EXPECT_EQ(file->punch(0, 1).code(), StatusCode::kIoError);
  EXPECT_EQ(file->read_now(0, {}).error().code(), StatusCode::kIoError);
}

TEST(MemoryDisk, RefusesWhatDoesNotFit) {
  MemoryDisk disk(1000);
  const auto file = disk.open("/a", OpenMode::kCreate).value();
  EXPECT_TRUE(file->write_at(0, as_bytes(std::string(800, 'x'))).ok());
  EXPECT_EQ(file->write_at(700, as_bytes(std::string(301, 'x'))).code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(disk.space("/").value().free_bytes, 200u);
  // A removed file keeps its space until it is closed, as on a real disk.
  ASSERT_TRUE(disk.remove("/a").ok());
  ASSERT_TRUE(disk.sync_directory("/").ok());
  EXPECT_EQ(disk.space("/").value().free_bytes, 200u);
}

TEST(MemoryDisk, HolesAreFree) {
  MemoryDisk disk(1000);
  const auto file = disk.open("/a", OpenMode::kCreate).value();
  ASSERT_TRUE(file->truncate(100'000).ok());
  ASSERT_TRUE(file->write_at(50'000, as_bytes(std::string(600, 'x'))).ok());
  EXPECT_EQ(disk.stat("/a").value().allocated_bytes, 600u);
  EXPECT_EQ(file->write_at(10, as_bytes(std::string(401, 'x'))).code(),
            StatusCode::kResourceExhausted);
  ASSERT_TRUE(file->punch(50'100, 400).ok());
  EXPECT_EQ(disk.space("/").value().free_bytes, 800u);
  EXPECT_TRUE(file->write_at(10, as_bytes(std::string(800, 'x'))).ok());
  EXPECT_EQ(disk.space("/").value().free_bytes, 0u);
  EXPECT_EQ(file->truncate(UINT64_MAX).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(file->write_at(UINT64_MAX, as_bytes("xy")).code(), StatusCode::kResourceExhausted);
}

TEST(MemoryDisk, AFullDiskStillLocks) {
  MemoryDisk disk(10);
  write(disk, "/a", "0123456789", true);
  const auto lock = disk.lock("/lock", "me");
  ASSERT_TRUE(lock.has_value());
  EXPECT_EQ(disk.lock("/lock", "you").error().message(), "/lock is held by another process");
}

}  // namespace
}  // namespace millrace
