// Damage that a cache finds on its disk: none of it reaches a reader.

#include "tests/cache/cache_damage.h"

#include <span>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "cache/object_file.h"
#include "tests/servers/torture.h"

namespace millrace {
namespace {

constexpr std::uint64_t kFlips = kSanitized ? 60 : 300;

TEST(CacheDamage, NoFlippedBitIsServedAndEachIsCounted) { flip_cache_bits(torture_seed(), kFlips); }

// The disk fails to read a small object's record once, so the object counts as absent and is
// fetched; the record that is there all the same was never checked, and is damaged.
TEST(CacheDamage, ARecordThatCouldNotBeLoadedIsNotTrustedLater) {
  LogCapture quiet(LogLevel::kOff);
  DamagedWorld world;
  ASSERT_TRUE(world.start().ok());
  world.read_all();
  world.stop();
  for (const CoveredBytes& record : world.covered(".seg"))
    world.flip(record.path, record.end * 8 - 3);
  ASSERT_TRUE(world.start().ok());
  world.drain();
  for (const SimulatedObject& object : world.objects) {
    world.disk.set_fault(fail_nth_call(0, EIO));
    EXPECT_TRUE(world.reads_right(object)) << object.version.key().value();
    world.drain();
    world.disk.set_fault({});
    EXPECT_TRUE(world.reads_right(object)) << object.version.key().value();
  }
}

// Another process may hold the file longer than ours lives: then it goes whole, by its name.
TEST(CacheDamage, AFileThatWasHandedOutIsNeverPunchedAlsoAfterARestart) {
  LogCapture quiet(LogLevel::kOff);
  SimulationWorld world({.quota_bytes = 16 * kMiB});
  const SimulatedObject held = world.add("held", 9 * kMiB, false);
  ASSERT_TRUE(world.start().ok());
  EXPECT_TRUE(world.reads_right(held));
  world.stop();
  const std::string digest = held.version.digest().to_text();
  const std::string stem = "/cache/objects/" + digest.substr(0, 2) + "/" + digest;
  {
    const auto file = ObjectFile::open(world.memory_disk, stem, held.version);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->mark_handed_out().ok());
  }
  const auto theirs = world.memory_disk.open(stem + ".data", OpenMode::kRead).value();
  ASSERT_TRUE(world.start().ok());
  for (int i = 0; i < 8; ++i)
    EXPECT_TRUE(world.reads_right(world.add(fmt::format("other-{}", i), 4 * kMiB, false)));
  world.drain();
  std::string bytes(held.version.size(), '\0');
  const auto size = theirs->read_at(0, std::as_writable_bytes(std::span(bytes)));
  ASSERT_TRUE(size);
  EXPECT_EQ(*size, bytes.size());
  EXPECT_TRUE(bytes == held.data.text()) << "somebody who holds the file sees a hole";
  EXPECT_LE(world.cache().usage().used_bytes, 16 * kMiB);
  EXPECT_LE(world.data_bytes_on_disk(), 16 * kMiB);
  EXPECT_TRUE(world.reads_right(held));
  world.stop();
}

}  // namespace
}  // namespace millrace
