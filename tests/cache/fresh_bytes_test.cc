#include "cache/fresh_bytes.h"

#include <string>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "cache/cached_object.h"
#include "tests/cache/cache_simulation_world.h"
#include "tests/cache/stored_content.h"

namespace millrace {
namespace {

using std::chrono::seconds;

class FreshBytesTest : public ::testing::Test {
 protected:
  std::shared_ptr<CachedObject> make(const std::string& name) {
    return std::make_shared<CachedObject>(stored_version(name, 16 * kMiB), ReadaheadOptions{});
  }
  // Four units from a unit of an object.
  void add(const std::shared_ptr<CachedObject>& of, std::uint32_t first) {
    fresh.add(of, {first, 4}, content.part(first * kUnitBytes, 4 * kUnitBytes));
  }
  bool has(const std::shared_ptr<CachedObject>& of, std::uint32_t unit) {
    const ByteRange range{unit * kUnitBytes + 5, 100};
    const std::vector<Slice> parts = of->fresh(range);
    if (parts.empty()) return false;
    EXPECT_EQ(parts.front().text(), content.part(range.offset, range.length).text());
    return true;
  }

  const Slice content = simulated_bytes("fresh", 2 * kMiB);
  ManualClock clock;
  FreshBytes fresh{12 * kUnitBytes, clock};
  std::shared_ptr<CachedObject> object = make("a");
};

TEST_F(FreshBytesTest, AReaderFindsThemUntilHeHasPassed) {
  EXPECT_FALSE(object->has_fresh());
  add(object, 4);
  EXPECT_TRUE(object->has_fresh());
  EXPECT_TRUE(has(object, 4) && has(object, 7));
  EXPECT_FALSE(has(object, 3));
  EXPECT_FALSE(has(object, 8));
  EXPECT_TRUE(object->fresh({4 * kUnitBytes, 4 * kUnitBytes + 1}).empty()) << "not all is there";
  add(object, 8);
  const std::vector<Slice> parts = object->fresh({7 * kUnitBytes, 2 * kUnitBytes});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(std::string(parts[0].text()) + std::string(parts[1].text()),
            content.part(7 * kUnitBytes, 2 * kUnitBytes).text());
  EXPECT_FALSE(has(object, 7));
  EXPECT_TRUE(has(object, 9)) << "the second piece was not passed";
  EXPECT_EQ(object->fresh({8 * kUnitBytes, 4 * kUnitBytes}).size(), 1u);
  EXPECT_FALSE(object->has_fresh());
}

TEST_F(FreshBytesTest, WhatWasReadOnItsWayIsNotKept) {
  Task nothing = [] {};
  ASSERT_EQ(object->begin_load(nothing), CachedObject::Load::kStarting);
  object->loaded(nullptr, {}, false);
  const auto flights = object->prefetch({0, 8}, 4);
  ASSERT_EQ(flights.size(), 2u);
  // All of the first and a part of the second.
  EXPECT_TRUE(object->prepare({0, 5 * kUnitBytes}, 4, false).new_ones.empty());
  for (const auto& flight : flights) {
    object->land(*flight, content.part(flight->units.first * kUnitBytes, 4 * kUnitBytes));
    add(object, flight->units.first);
    object->retire(flight, std::nullopt);
  }
  EXPECT_FALSE(has(object, 0));
  EXPECT_TRUE(has(object, 5));
  add(object, 8);
  add(object, 12);
  EXPECT_TRUE(has(object, 12)) << "its room is free again";
}

TEST_F(FreshBytesTest, WhatIsTooMuchIsNotKept) {
  const std::shared_ptr<CachedObject> other = make("b");
  add(object, 0);
  add(object, 4);
  add(other, 8);
  add(other, 12);
  EXPECT_TRUE(has(object, 0) && has(object, 4) && has(other, 8));
  EXPECT_FALSE(has(other, 12));
  // Room returns with what is passed, and with an object that goes.
  EXPECT_EQ(object->fresh({0, 4 * kUnitBytes}).size(), 1u);
  add(other, 12);
  EXPECT_TRUE(has(other, 12));
  add(other, 16);
  EXPECT_FALSE(has(other, 16));
  object.reset();
  add(other, 16);
  EXPECT_TRUE(has(other, 16));
}

TEST_F(FreshBytesTest, TheyDoNotStayForEver) {
  add(object, 0);
  clock.advance(seconds(6));
  add(object, 4);
  clock.advance(seconds(6));
  add(object, 8);
  EXPECT_FALSE(has(object, 0));
  EXPECT_TRUE(has(object, 4) && has(object, 8));
  fresh.drop_all();
  EXPECT_FALSE(object->has_fresh());
}

// A stream takes what was fetched ahead of it from memory, and its object is on the disk after.
TEST(FreshBytesOfStreams, AStreamReadsFromMemoryWhatItWillFindOnTheDisk) {
  SimulationWorld world({.memory_bytes_max = 256 * kMiB});
  const SimulatedObject object = world.add("stream", 24 * kMiB, false);
  ASSERT_TRUE(world.start().ok());
  const auto reads_from = [&](CacheSource source) {
    return world.metrics.counter(MetricId::kCacheReads, {static_cast<std::size_t>(source)}).value();
  };
  for (std::uint64_t at = 0; at < object.version.size(); at += kMiB) {
    const Result<Slice> got = world.read(object, {at, kMiB});
    ASSERT_TRUE(got && got->text() == object.data.part(at, kMiB).text());
    world.drain();
  }
  EXPECT_GE(reads_from(CacheSource::kMemory), 20u);
  EXPECT_EQ(reads_from(CacheSource::kDisk), 0u);
  const std::uint64_t gets = world.gets();
  EXPECT_TRUE(world.reads_right(object));
  EXPECT_EQ(world.gets(), gets);
  world.stop();
}

}  // namespace
}  // namespace millrace
