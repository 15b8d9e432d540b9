// The cache on one thread: orders of steps that real threads seldom take.

#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/cache/cache_simulation_run.h"
#include "tests/cache/cache_simulation_world.h"
#include "tests/servers/torture.h"

namespace millrace {
namespace {

constexpr std::uint64_t kSimulationSeeds = kSanitized ? 30 : 150;

TEST(CacheSimulation, EveryReadIsAnsweredOnceInTimeAndRight) {
  if (const char* seed = std::getenv("MILLRACE_SEED")) {
    simulate_cache(std::strtoull(seed, nullptr, 10));
    return;
  }
  const SimulationFigures figures = simulate_cache(1, kSimulationSeeds);
  EXPECT_GT(figures.succeeded, kSimulationSeeds * 10) << "too few for the test to mean something";
  EXPECT_GT(figures.failed, kSimulationSeeds);
  EXPECT_GT(figures.evicted_blocks, kSimulationSeeds);
  EXPECT_GT(figures.store_faults, kSimulationSeeds);
  EXPECT_GT(figures.disk_faults, kSimulationSeeds);
}

// A block goes while the object that it belongs to is being loaded, in every order of the steps.
TEST(CacheSimulation, EvictionMeetsLoading) {
  constexpr std::uint64_t kQuota = 9 * kMiB;
  for (std::uint64_t seed = 1; seed <= (kSanitized ? 8 : 40); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    SimulationWorld world(
        {.seed = seed, .quota_bytes = kQuota, .fetch_bytes_max = kMiB, .readahead = {0}});
    const SimulatedObject old = world.add("old", 8 * kMiB, false);
    const SimulatedObject fresh = world.add("fresh", 5 * kMiB, false);
    ASSERT_TRUE(world.start().ok());
    ASSERT_TRUE(world.reads_right(old));
    world.stop();
    ASSERT_TRUE(world.start().ok());
    world.drain();
    int answers = 0;
    const auto read = [&](const SimulatedObject& object, ByteRange range) {
      world.cache().read(
          RequestContext::background(), object.version, range,
          Completion<Slice>(inline_executor(), [&, range](const Result<Slice>& result) {
            ++answers;
            EXPECT_TRUE(result &&
                        result->text() == object.data.part(range.offset, range.length).text());
          }));
    };
    read(fresh, {0, fresh.version.size()});
    for (std::uint64_t steps = seed % 16; steps > 0; --steps)
      world.step();
    read(old, {0, 1});
    world.drain();
    EXPECT_EQ(answers, 2);
    EXPECT_LE(world.cache().usage().used_bytes, kQuota);
    EXPECT_LE(world.data_bytes_on_disk(), kQuota);
    EXPECT_GE(world.cache().usage().used_bytes, world.data_bytes_on_disk());
    world.stop();
  }
}

// Reads another object, for which the first one has to make room, in the middle of the n-th call.
void interrupt_nth_call(SimulationWorld& world, DiskOperation operation, std::uint64_t n,
                        const SimulatedObject& other, bool& interrupted) {
  world.disk.set_fault(
      [&, operation, seen = std::make_shared<std::uint64_t>(0), n](const DiskCall& call) {
        const bool of_object = call.path.ends_with(".data") || call.path.ends_with(".map");
        if (!interrupted && of_object && call.operation == operation && (*seen)++ == n) {
          interrupted = true;
          EXPECT_TRUE(world.reads_right(other));
          world.drain();
        }
        return 0;
      });
}

void expect_right(SimulationWorld& world, const SimulatedObject& object, ByteRange range) {
  const Result<Slice> got = world.read(object, range);
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_TRUE(got->text() == object.data.part(range.offset, range.length).text())
      << "wrong bytes at " << range.offset;
}

TEST(CacheSimulation, EvictionInTheMiddleOfAnyDiskCallShowsNobodyAHole) {
  for (const bool after_restart : {false, true}) {
    for (const DiskOperation operation : {DiskOperation::kRead, DiskOperation::kWrite}) {
      bool interrupted = true;
      for (std::uint64_t n = 0; interrupted; ++n) {
        SCOPED_TRACE(fmt::format("{} call {}{}",
                                 operation == DiskOperation::kRead ? "read" : "write", n,
                                 after_restart ? " after a restart" : ""));
        SimulationWorld world({.quota_bytes = 5 * kMiB, .fetch_bytes_max = kMiB, .readahead = {0}});
        const SimulatedObject object = world.add("object", 4 * kMiB, false);
        const SimulatedObject other = world.add("other", 4 * kMiB, false);
        ASSERT_TRUE(world.start().ok());
        ASSERT_TRUE(world.read(object, {0, 3 * kMiB}));
        world.drain();
        if (after_restart) {
          world.stop();
          ASSERT_TRUE(world.start().ok());
          world.drain();
        }
        interrupted = false;
        interrupt_nth_call(world, operation, n, other, interrupted);
        expect_right(world, object, {kMiB, 1000});
        EXPECT_TRUE(world.reads_right(object));
        world.drain();
        world.disk.set_fault({});
        // What was written last first: the other parts may have to be fetched, and push it out.
        expect_right(world, object, {3 * kMiB, kMiB});
        EXPECT_TRUE(world.reads_right(object));
        EXPECT_LE(world.cache().usage().used_bytes, 5 * kMiB);
        EXPECT_LE(world.data_bytes_on_disk(), 5 * kMiB);
        world.stop();
        ASSERT_TRUE(world.start().ok());
        EXPECT_TRUE(world.reads_right(object));
        EXPECT_TRUE(world.reads_right(other));
        EXPECT_EQ(world.bad_units(), 0u);
        world.stop();
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace millrace
