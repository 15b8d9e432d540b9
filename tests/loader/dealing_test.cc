#include "loader/dealing.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using ::testing::HasSubstr;

struct DealtStep {
  std::vector<std::vector<std::uint64_t>> ranks;
};

std::vector<DealtStep> deal_all(const Dealing& dealing, std::uint64_t world) {
  std::vector<DealtStep> steps(dealing.steps());
  for (std::uint64_t step = 0; step < dealing.steps(); ++step) {
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      const Share share = dealing.share(step, rank);
      std::vector<std::uint64_t>& taken = steps[step].ranks.emplace_back();
      for (std::uint64_t n = 0; n < share.count; ++n)
        taken.push_back(share.at(n));
    }
  }
  return steps;
}

// The rule of the last two steps, for one (samples, start, world, batch).
void check_even(std::uint64_t samples, std::uint64_t start, std::uint64_t world,
                std::uint64_t batch, std::uint64_t ranks_per_node) {
  SCOPED_TRACE(::testing::Message() << samples << " samples from " << start << ", world " << world
                                    << ", batch " << batch << ", per node " << ranks_per_node);
  const auto dealing = Dealing::make(
      {.samples = samples,
       .start = start,
       .topology = {.world = world, .ranks_per_node = ranks_per_node, .replication = 1},
       .batch = batch,
       .last = LastSteps::kEven});
  ASSERT_TRUE(dealing) << dealing.error().to_string();
  const std::uint64_t rest = samples - start;
  ASSERT_EQ(dealing->steps(), (rest + world * batch - 1) / (world * batch));

  std::uint64_t next = start;
  std::uint64_t empty = 0;
  for (std::uint64_t step = 0; step < dealing->steps(); ++step) {
    ASSERT_EQ(dealing->position(step), next);
    std::vector<std::uint64_t> taken;
    std::uint64_t least = batch;
    std::uint64_t most = 0;
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      const Share share = dealing->share(step, rank);
      for (std::uint64_t n = 0; n < share.count; ++n)
        taken.push_back(share.at(n));
      least = std::min(least, share.count);
      most = std::max(most, share.count);
      if (share.count == 0) ++empty;
    }
    std::ranges::sort(taken);
    for (const std::uint64_t position : taken)
      ASSERT_EQ(position, next++);
    ASSERT_LE(most, batch);
    ASSERT_LE(most - least, 1U);
    if (step + 2 < dealing->steps()) {
      ASSERT_EQ(least, batch);
    }
  }
  ASSERT_EQ(next, samples);
  ASSERT_EQ(dealing->position(dealing->steps()), samples);
  ASSERT_EQ(dealing->empty_shares(), empty);
  if (rest >= world * dealing->steps()) {
    ASSERT_EQ(empty, 0U);
  }
  ASSERT_EQ(dealing->dropped() + dealing->padded(), 0U);
}

TEST(DealingTest, EverySampleOnceInEqualStepsForAllSmallNumbers) {
  for (std::uint64_t world = 1; world <= 9; ++world) {
    for (std::uint64_t batch = 1; batch <= 6; ++batch) {
      for (std::uint64_t samples = world; samples <= 4 * world * batch + 3; ++samples) {
        check_even(samples, 0, world, batch, 1);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(DealingTest, EverySampleOnceForRandomNumbersAndAfterAResume) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 1500; ++round) {
    const std::uint64_t per_node = 1 + random() % 8;
    const std::uint64_t world = per_node * (1 + random() % 8);
    const std::uint64_t batch = 1 + random() % 50;
    const std::uint64_t samples = world + random() % 3000;
    check_even(samples, random() % (samples + 1), world, batch, per_node);
    if (HasFatalFailure()) return;
  }
}

TEST(DealingTest, OnlyABatchOfOneOrTheLastFewSamplesLeaveSharesEmpty) {
  const auto dealt = [](std::uint64_t samples, std::uint64_t start, std::uint64_t batch) {
    return Dealing::make({.samples = samples,
                          .start = start,
                          .topology = {.world = 4, .ranks_per_node = 1, .replication = 1},
                          .batch = batch,
                          .last = LastSteps::kEven})
        .value()
        .empty_shares();
  };
  EXPECT_EQ(dealt(5, 0, 1), 3U);  // Five samples in two steps of four ranks.
  EXPECT_EQ(dealt(8, 0, 1), 0U);
  EXPECT_EQ(dealt(9, 0, 2), 0U);
  EXPECT_EQ(dealt(100, 98, 8), 2U);
}

TEST(DealingTest, DropsAndPadsOnRequestAndSaysHowMany) {
  DealingOptions options{.samples = 103,
                         .start = 0,
                         .topology = {.world = 4, .ranks_per_node = 2, .replication = 1},
                         .batch = 5,
                         .last = LastSteps::kDrop};
  const Dealing dropping = Dealing::make(options).value();
  EXPECT_EQ(dropping.steps(), 5U);
  EXPECT_EQ(dropping.dropped(), 3U);
  options.last = LastSteps::kPad;
  const Dealing padding = Dealing::make(options).value();
  EXPECT_EQ(padding.steps(), 6U);
  EXPECT_EQ(padding.padded(), 17U);
  for (const Dealing& dealing : {dropping, padding}) {
    for (const DealtStep& step : deal_all(dealing, 4)) {
      for (const auto& rank : step.ranks)
        EXPECT_EQ(rank.size(), 5U);
    }
  }
}

TEST(DealingTest, RanksOfAGroupSeeTheSameSamples) {
  const Dealing dealing =
      Dealing::make({.samples = 1000,
                     .start = 0,
                     .topology = {.world = 12, .ranks_per_node = 6, .replication = 3},
                     .batch = 7,
                     .last = LastSteps::kEven})
          .value();
  EXPECT_EQ(dealing.steps(), 36U);
  std::set<std::uint64_t> seen;
  for (const DealtStep& step : deal_all(dealing, 12)) {
    for (std::uint64_t rank = 0; rank < 12; ++rank) {
      EXPECT_EQ(step.ranks[rank], step.ranks[rank / 3 * 3]);
      if (rank % 3 == 0) seen.insert(step.ranks[rank].begin(), step.ranks[rank].end());
    }
  }
  EXPECT_EQ(seen.size(), 1000U);
}

// A node keeps to positions that are alike modulo the number of nodes, also after a resume as more.
TEST(DealingTest, ANodeKeepsToItsLanes) {
  for (const std::uint64_t start : {0, 777}) {
    const Dealing dealing =
        Dealing::make({.samples = 10'000,
                       .start = start,
                       .topology = {.world = 32, .ranks_per_node = 8, .replication = 1},
                       .batch = 3,
                       .last = LastSteps::kEven})
            .value();
    for (const DealtStep& step : deal_all(dealing, 32)) {
      for (std::uint64_t rank = 0; rank < 32; ++rank) {
        for (const std::uint64_t position : step.ranks[rank])
          ASSERT_EQ(position % 4, rank / 8);
      }
    }
  }
}

// The numbers below are the algorithm: ranks of different releases must not deal differently.
TEST(DealingTest, IsTheSameInEveryRelease) {
  const Dealing dealing =
      Dealing::make({.samples = 107,
                     .start = 10,
                     .topology = {.world = 4, .ranks_per_node = 2, .replication = 1},
                     .batch = 8,
                     .last = LastSteps::kEven})
          .value();
  std::vector<std::uint64_t> positions;
  for (std::uint64_t step = 0; step <= dealing.steps(); ++step) {
    positions.push_back(dealing.position(step));
  }
  EXPECT_EQ(positions, (std::vector<std::uint64_t>{10, 42, 74, 91, 107}));
  EXPECT_EQ(dealing.share(0, 1), (Share{.first = 10, .stride = 4, .count = 8}));
  EXPECT_EQ(dealing.share(2, 2), (Share{.first = 77, .stride = 4, .count = 4}));
}

TEST(DealingTest, SaysWhatCannotBeDealt) {
  const auto refusal = [](std::uint64_t samples, Topology topology, std::uint64_t batch,
                          LastSteps last = LastSteps::kEven, std::uint64_t start = 0) {
    const auto dealing = Dealing::make(
        {.samples = samples, .start = start, .topology = topology, .batch = batch, .last = last});
    EXPECT_FALSE(dealing);
    return dealing ? "" : dealing.error().to_string();
  };
  const Topology four{.world = 4, .ranks_per_node = 1, .replication = 1};
  EXPECT_THAT(refusal(3, four, 1), HasSubstr("3 samples cannot be dealt to 4 ranks"));
  EXPECT_THAT(refusal(0, four, 1), HasSubstr("0 samples"));
  EXPECT_THAT(refusal(10, four, 0), HasSubstr("a batch cannot have 0 samples"));
  EXPECT_THAT(refusal(10, four, UINT64_MAX / 2), HasSubstr("a batch size from 1 to"));
  EXPECT_THAT(refusal(10, four, 5, LastSteps::kDrop), HasSubstr("drop_last"));
  EXPECT_THAT(refusal(10, four, 1, LastSteps::kEven, 11), HasSubstr("position 11"));
  EXPECT_THAT(refusal(10, {.world = 0, .ranks_per_node = 1, .replication = 1}, 1),
              HasSubstr("world of 0"));
  EXPECT_THAT(refusal(10, {.world = 4, .ranks_per_node = 3, .replication = 1}, 1),
              HasSubstr("3 on each node: ranks_per_node must divide"));
  EXPECT_THAT(refusal(10, {.world = 4, .ranks_per_node = 1, .replication = 3}, 1),
              HasSubstr("replication must divide"));
  EXPECT_THAT(refusal(UINT64_MAX, four, 1), HasSubstr("an epoch of"));
}

}  // namespace
}  // namespace millrace
