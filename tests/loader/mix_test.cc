#include "loader/mix.h"

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loader/block_layout.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Counts = std::vector<std::uint64_t>;

std::vector<MixShare> shares_of(ShareKind kind, const std::vector<double>& amounts) {
  std::vector<MixShare> shares;
  for (const double amount : amounts)
    shares.push_back({.kind = kind, .amount = amount});
  return shares;
}

TEST(MixCountsTest, WeightsAddUpToTheEpoch) {
  const Counts samples = {1000, 500, 10};
  const auto counts = [&](const std::vector<double>& weights, std::uint64_t epoch) {
    return mix_counts(shares_of(ShareKind::kWeight, weights), samples, epoch).value();
  };
  EXPECT_THAT(counts({1, 1, 2}, 1000), ElementsAre(250, 250, 500));
  EXPECT_THAT(counts({1, 1, 1}, 1000), ElementsAre(334, 333, 333));
  EXPECT_THAT(counts({1, 0, 0}, 0), ElementsAre(1510, 0, 0));
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    const std::uint64_t epoch = 1 + random() % 1'000'000'000'000;
    std::vector<double> weights;
    for (int n = 0; n < 3; ++n)
      weights.push_back(std::exp(static_cast<double>(random() % 30)));
    const Counts dealt = counts(weights, epoch);
    EXPECT_EQ(dealt[0] + dealt[1] + dealt[2], epoch);
  }
}

TEST(MixCountsTest, RepeatsAndChooses) {
  const Counts samples = {1000, 500};
  EXPECT_THAT(mix_counts(shares_of(ShareKind::kRepeat, {0.5, 3}), samples, 0).value(),
              ElementsAre(500, 1500));
  EXPECT_THAT(mix_counts(shares_of(ShareKind::kChoose, {7, 2000}), samples, 0).value(),
              ElementsAre(7, 2000));
}

TEST(MixCountsTest, SaysWhichDatasetIsWrong) {
  const auto refusal = [](std::vector<MixShare> shares, const Counts& samples) {
    const auto counts = mix_counts(shares, samples, 0);
    EXPECT_FALSE(counts);
    return counts ? "" : counts.error().to_string();
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refusal(shares_of(ShareKind::kWeight, {1, nan}), {5, 5}), HasSubstr("dataset 2"));
  EXPECT_THAT(refusal(shares_of(ShareKind::kRepeat, {-1, 1}), {5, 5}), HasSubstr("dataset 1"));
  EXPECT_THAT(refusal(shares_of(ShareKind::kRepeat, {1e15, 1}), {500, 5}), HasSubstr("too many"));
  EXPECT_THAT(refusal(shares_of(ShareKind::kWeight, {0, 0}), {5, 5}), HasSubstr("all weights"));
  EXPECT_THAT(refusal(shares_of(ShareKind::kChoose, {0, 0}), {5, 5}), HasSubstr("without samples"));
  EXPECT_THAT(refusal(shares_of(ShareKind::kChoose, {1, 1}), {5, 0}), HasSubstr("no samples"));
  EXPECT_THAT(refusal({{.kind = ShareKind::kChoose, .amount = 1},
                       {.kind = ShareKind::kWeight, .amount = 1}},
                      {5, 5}),
              HasSubstr("cannot be mixed"));
}

TEST(MixedSequenceTest, TakesEachElementOnceAndKeepsToPrefixesAtBoundaries) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 60; ++round) {
    Counts counts;
    for (std::uint64_t n = 1 + random() % 5; n > 0; --n)
      counts.push_back(random() % 3000);
    counts[0] += 1;
    const MixedSequence mix(counts, random());
    std::vector<std::vector<bool>> seen;
    for (const std::uint64_t count : counts)
      seen.emplace_back(count);
    Counts taken(counts.size());
    std::uint64_t boundary = 0;
    for (std::uint64_t position = 0; position <= mix.size(); ++position) {
      if (position == boundary && (counts.size() > 1 || position % 100 == 0)) {
        ASSERT_EQ(mix.taken_before(position), taken) << "round " << round << " at " << position;
        for (std::size_t n = 0; n < counts.size(); ++n) {
          for (std::uint64_t index = 0; index < taken[n]; ++index)
            ASSERT_TRUE(seen[n][index]);
        }
      }
      if (position == mix.size()) break;
      const MixedSequence::Pick pick = mix.at(position);
      ASSERT_LT(pick.index, counts[pick.sequence]);
      ASSERT_FALSE(seen[pick.sequence][pick.index]);
      seen[pick.sequence][pick.index] = true;
      ++taken[pick.sequence];
      boundary = mix.boundary(position + 1);
      ASSERT_GE(boundary, position + 1);
    }
    ASSERT_EQ(taken, counts);
  }
}

// Every stretch of the epoch has its share, and so has every rank.
TEST(MixedSequenceTest, SpreadsEachSequenceEvenly) {
  const MixedSequence mix({60'000, 30'000, 10'000}, 7);
  for (const std::uint64_t world : {1, 2, 3, 8}) {
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      Counts taken(3);
      for (std::uint64_t p = 40'000 + rank; p < 50'000; p += world)
        ++taken[mix.at(p).sequence];
      const double all = 10'000.0 / static_cast<double>(world);
      EXPECT_NEAR(static_cast<double>(taken[0]), 0.6 * all, 0.05 * all);
      EXPECT_NEAR(static_cast<double>(taken[1]), 0.3 * all, 0.05 * all);
      EXPECT_NEAR(static_cast<double>(taken[2]), 0.1 * all, 0.05 * all);
    }
  }
}

TEST(MixedSequenceTest, APositionKeepsItsLane) {
  const MixedSequence mix({kOrderLanes * 30, kOrderLanes * 11}, 7);
  for (std::uint64_t p = 0; p < mix.size(); ++p) {
    EXPECT_EQ(mix.at(p).index % kOrderLanes, p % kOrderLanes);
  }
}

}  // namespace
}  // namespace millrace
