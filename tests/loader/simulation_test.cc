#include "loader/simulation.h"

#include <gtest/gtest.h>

#include "loader/simulated_fetches.h"

namespace millrace {
namespace {

// Classes one behind the other, as an ImageFolder has them: 110 kB a picture.
constexpr std::uint64_t kPictures = 200'000;
constexpr std::uint64_t kPictureBytes = 110'000;

SimulationReport simulated(OrderMode mode, const Topology& topology,
                           std::uint64_t cache_bytes = 0) {
  const std::vector<SampleStretch> stretches = {
      {.samples = kPictures, .bytes = kPictures * kPictureBytes}};
  const auto report = simulate_epoch(
      stretches, {.order = {.mode = mode},
                  .topology = topology,
                  .batch = 256,
                  .cache_bytes = cache_bytes,
                  .label = [](std::uint64_t sample) -> std::int64_t { return sample / 1000; }});
  EXPECT_TRUE(report) << report.error().to_string();
  return report.value_or(SimulationReport());
}

double ratio(double a, double b) { return a / b; }

TEST(SimulationTest, BlocksAreNearlyAsWellShuffledAsAllAtOnce) {
  const SimulationReport report = simulated(OrderMode::kBlock, {});
  EXPECT_EQ(report.samples, kPictures);
  EXPECT_EQ(report.positions, kPictures);
  EXPECT_GE(ratio(report.quality.blocks_in_batch, report.full.blocks_in_batch), 0.95);
  EXPECT_GE(ratio(report.quality.classes_in_batch, report.full.classes_in_batch), 0.95);
  EXPECT_GE(ratio(report.quality.entropy_bits, report.full.entropy_bits), 0.99);
  // A third of the data is enough to fetch nothing twice.
  EXPECT_LE(ratio(report.fetched_bytes, report.bytes), 1.01);
  EXPECT_LT(report.cache_bytes_min, report.bytes / 2);
  // A batch takes what its samples lie in, and not their blocks.
  EXPECT_LT(report.first_step_bytes, 256 * (kPictureBytes + 128 * kKiB));
}

TEST(SimulationTest, NodesWithCachesOfTheirOwnFetchNothingForEachOther) {
  const SimulationReport one = simulated(OrderMode::kBlock, {});
  const SimulationReport four =
      simulated(OrderMode::kBlock, {.world = 8, .ranks_per_node = 2, .replication = 1});
  EXPECT_LE(ratio(four.fetched_bytes, one.fetched_bytes), 1.02);
  EXPECT_LT(four.cache_bytes_min, one.cache_bytes_min / 3);
}

TEST(SimulationTest, AFullShuffleCostsMoreThanItsBytes) {
  const SimulationReport small = simulated(OrderMode::kFull, {}, 2 * kGiB);
  const SimulationReport blocks = simulated(OrderMode::kBlock, {}, 9 * kGiB);
  EXPECT_GT(ratio(small.fetched_bytes, small.needed_bytes), 1.15);
  EXPECT_LE(ratio(blocks.fetched_bytes, blocks.needed_bytes), 1.01);
  EXPECT_EQ(small.quality.blocks_in_batch, small.full.blocks_in_batch);
}

TEST(SimulationTest, TheOrderOfTheVersionIsNoShuffle) {
  const SimulationReport report = simulated(OrderMode::kNone, {});
  EXPECT_LT(report.quality.blocks_in_batch, 10);
  EXPECT_LT(report.quality.classes_in_batch, 2.1);
  EXPECT_LT(report.quality.entropy_bits, 1);
}

TEST(SimulationTest, FewerSamplesThanRanksIsRefused) {
  const auto report = simulate_epoch({{.samples = 3, .bytes = 3}}, {.topology = {.world = 4}});
  EXPECT_EQ(report.error().code(), StatusCode::kInvalidArgument);
}

TEST(SimulatedFetchesTest, EvictsWhatIsUsedLast) {
  SimulatedFetches fetches;
  for (const std::uint64_t unit : {0, 1, 2, 0, 1, 2, 3}) {
    fetches.read({.offset = unit * 64 * kKiB, .length = 1});
  }
  EXPECT_EQ(fetches.needed_bytes(), 4 * 64 * kKiB);
  EXPECT_EQ(fetches.cache_bytes_min(), 3 * 64 * kKiB);
  EXPECT_EQ(fetches.fetched_bytes(0), 4 * 64 * kKiB);
  EXPECT_EQ(fetches.fetched_bytes(3 * 64 * kKiB), 4 * 64 * kKiB);
  // Unit 2 has to go for 0 and 1, and is fetched again.
  EXPECT_EQ(fetches.fetched_bytes(2 * 64 * kKiB), 5 * 64 * kKiB);
}

}  // namespace
}  // namespace millrace
