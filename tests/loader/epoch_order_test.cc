// The order of an epoch: blocks, windows, and what they promise.

#include "loader/epoch_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::shared_ptr<const BlockLayout> layout_of(const std::vector<SampleStretch>& stretches,
                                             std::uint64_t block_bytes = kOrderBlockBytes) {
  return std::make_shared<const BlockLayout>(stretches, block_bytes);
}

// Blocks of `block_samples` samples, where the numbers fit.
std::shared_ptr<const BlockLayout> even_layout(std::uint64_t samples, std::uint64_t block_samples) {
  return layout_of({{.samples = samples, .bytes = samples}}, block_samples);
}

OrderPlan order_plan(OrderMode mode, std::uint64_t seed = 17, std::uint64_t rows = kWindowRows) {
  return {.mode = mode, .seed = {.content_digest = {}, .seed = seed}, .window_rows = rows};
}

std::vector<std::uint64_t> all_of(const EpochOrder& order) {
  std::vector<std::uint64_t> samples(order.size());
  for (std::uint64_t n = 0; n < order.size(); ++n)
    samples[n] = order.at(n);
  return samples;
}

bool has_each_once(std::vector<std::uint64_t> samples) {
  std::ranges::sort(samples);
  for (std::uint64_t n = 0; n < samples.size(); ++n) {
    if (samples[n] != n) return false;
  }
  return true;
}

TEST(BlockLayoutTest, CoversEachSampleOnce) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<SampleStretch> stretches;
    for (std::uint64_t n = random() % 6; n > 0; --n) {
      const std::uint64_t samples = random() % 5000;
      stretches.push_back({.samples = samples, .bytes = samples * (random() % 300'000)});
    }
    const BlockLayout layout(stretches);
    std::vector<std::uint64_t> samples;
    for (const BlockLayout::Blocks& blocks : layout.blocks()) {
      for (std::uint64_t block = 0; block < blocks.rows * kOrderLanes; ++block) {
        const std::uint64_t first = layout.first_place(blocks, block);
        for (std::uint64_t n = 0; n < blocks.block_samples; ++n) {
          samples.push_back(layout.sample(blocks.size_class, first + n));
        }
      }
    }
    for (std::uint64_t n = 0; n < layout.loose_samples(); ++n) {
      samples.push_back(layout.loose_sample(n));
    }
    ASSERT_EQ(samples.size(), layout.samples()) << "round " << round;
    ASSERT_TRUE(has_each_once(samples)) << "round " << round;
  }
}

TEST(BlockLayoutTest, ABlockHasAtLeastItsBytesAndLittleMore) {
  for (const std::uint64_t bytes : {1, 100, 4096, 110'000, 4'000'000}) {
    const std::uint64_t samples = 200 * kGiB / bytes;
    const BlockLayout layout(
        std::vector<SampleStretch>{{.samples = samples, .bytes = samples * bytes}});
    ASSERT_LE(layout.blocks().size(), 2U) << bytes;
    for (const BlockLayout::Blocks& blocks : layout.blocks()) {
      EXPECT_GE(blocks.block_samples * bytes, 4 * kMiB);
      EXPECT_LT(blocks.block_samples * bytes, 6 * kMiB + 2 * bytes);
    }
    EXPECT_LT(layout.loose_samples(), kOrderLanes);
  }
  const BlockLayout small(std::vector<SampleStretch>{{.samples = 9600, .bytes = 9600}});
  ASSERT_EQ(small.blocks().size(), 1U);
  EXPECT_EQ(small.blocks()[0].rows, kOrderRowsMin);
}

TEST(BlockLayoutTest, SmallDifferencesBetweenShardsMakeNoClass) {
  std::vector<SampleStretch> shards;
  for (std::uint64_t n = 0; n < 1000; ++n) {
    shards.push_back({.samples = 600 + n % 7, .bytes = (600 + n % 7) * (110'000 + n % 13 * 4000)});
  }
  EXPECT_LE(BlockLayout(shards).blocks().size(), 2U);
}

TEST(EpochOrderTest, TakesEachSampleOnceInEveryMode) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 100; ++round) {
    std::vector<SampleStretch> stretches;
    for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
      const std::uint64_t samples = 1 + random() % 3000;
      const std::uint64_t bytes = std::uint64_t{1} << random() % 8;
      stretches.push_back({.samples = samples, .bytes = samples * bytes});
    }
    const auto layout = layout_of(stretches, 1 + random() % 64);
    for (const OrderMode mode : {OrderMode::kNone, OrderMode::kBlock, OrderMode::kFull}) {
      const EpochOrder order(order_plan(mode, random(), kWindowRowsMin + random() % 9), layout,
                             random() % 3);
      ASSERT_EQ(order.size(), layout->samples());
      ASSERT_TRUE(has_each_once(all_of(order)))
          << "round " << round << ", " << order_mode_name(mode);
    }
  }
}

TEST(EpochOrderTest, DependsOnContentSeedAndEpochAlone) {
  const auto layout = even_layout(20'000, 16);
  const auto order = [&](std::uint64_t seed, std::uint64_t epoch) {
    return all_of(EpochOrder(order_plan(OrderMode::kBlock, seed), layout, epoch));
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_NE(order(1, 0), order(2, 0));
}

// The values below are the algorithm, as in KeyedPermutationTest.
TEST(EpochOrderTest, IsTheSameInEveryRelease) {
  const auto layout = layout_of(
      {{.samples = 100'000, .bytes = 100'000}, {.samples = 10'000, .bytes = 640'000}}, 64);
  const EpochOrder order(order_plan(OrderMode::kBlock), layout, 2);
  std::vector<std::uint64_t> samples;
  for (const std::uint64_t position : {0, 1, 55'555, 109'998, 109'999}) {
    samples.push_back(order.at(position));
  }
  EXPECT_EQ(samples, (std::vector<std::uint64_t>{109'202, 108'008, 83'990, 99'991, 109'994}));
}

// A block is in use from the first of its samples to the last. That is what a cache has to hold.
TEST(EpochOrderTest, FewBlocksAreInUseAtATime) {
  constexpr std::uint64_t kBlock = 16;
  constexpr std::uint64_t kRows = 8;
  const std::uint64_t size = kBlock * kOrderLanes * 50;
  const EpochOrder order(order_plan(OrderMode::kBlock, 3, kRows), even_layout(size, kBlock), 0);
  std::map<std::uint64_t, std::uint64_t> used;
  std::uint64_t open = 0;
  std::uint64_t most = 0;
  for (std::uint64_t n = 0; n < size; ++n) {
    std::uint64_t& samples = used[order.at(n) / kBlock];
    if (samples == 0) ++open;
    most = std::max(most, open);
    if (++samples == kBlock) --open;
  }
  EXPECT_EQ(open, 0U);
  EXPECT_GE(most, kRows * kOrderLanes);
  EXPECT_LT(most, 2 * kRows * kOrderLanes);
}

// Neighbours come from different blocks, so that a batch sees about as many blocks as samples: as
// in a shuffle of all.
TEST(EpochOrderTest, ABatchHasNearlyAsManyBlocksAsInAFullShuffle) {
  constexpr std::uint64_t kBlock = 64;
  const auto layout = even_layout(kBlock * 9600, kBlock);
  const auto blocks_in_batches = [&](OrderMode mode) {
    const EpochOrder order(order_plan(mode), layout, 0);
    constexpr std::uint64_t kBatch = 256;
    std::uint64_t sum = 0;
    for (std::uint64_t begin = 0; begin + kBatch <= order.size(); begin += 7 * kBatch) {
      std::set<std::uint64_t> blocks;
      for (std::uint64_t n = begin; n < begin + kBatch; ++n)
        blocks.insert(order.at(n) / kBlock);
      sum += blocks.size();
    }
    return static_cast<double>(sum);
  };
  EXPECT_GE(blocks_in_batches(OrderMode::kBlock) / blocks_in_batches(OrderMode::kFull), 0.98);
}

// What makes nodes with caches of their own fetch each byte once for all of them.
TEST(EpochOrderTest, NodesThatTakeEveryNthPositionShareNoBlock) {
  constexpr std::uint64_t kBlock = 16;
  // Whole rows only, so that nothing is left for the end.
  const auto layout = even_layout(kBlock * kOrderLanes * 50, kBlock);
  const EpochOrder order(order_plan(OrderMode::kBlock), layout, 0);
  for (const std::uint64_t nodes : {2, 3, 4, 6, 8, 12, 16, 24, 48}) {
    std::map<std::uint64_t, std::uint64_t> node_of_block;
    for (std::uint64_t n = 0; n < order.size(); ++n) {
      const auto [at, is_new] = node_of_block.emplace(order.at(n) / kBlock, n % nodes);
      ASSERT_EQ(at->second, n % nodes) << nodes << " nodes, position " << n;
    }
  }
}

// Samples of 4 MiB and of 1 KiB in one version: every part of the epoch has both.
TEST(EpochOrderTest, SamplesOfAllSizesAreSpreadOverTheEpoch) {
  const std::uint64_t small = 2'000'000;
  const auto layout = layout_of(
      {{.samples = small, .bytes = small * kKiB}, {.samples = 6400, .bytes = 6400 * 4 * kMiB}});
  const EpochOrder order(order_plan(OrderMode::kBlock), layout, 0);
  std::vector<std::uint64_t> large_in_tenth(10);
  for (std::uint64_t n = 0; n < order.size(); ++n) {
    if (order.at(n) >= small) ++large_in_tenth[n * 10 / order.size()];
  }
  for (const std::uint64_t large : large_in_tenth) {
    EXPECT_NEAR(static_cast<double>(large), 640, 2 * kOrderLanes);
  }
}

// Blocks of two sizes are cut from two parts of the version; both are read all the time.
TEST(EpochOrderTest, EveryPartOfTheVersionIsSpreadOverTheEpoch) {
  const EpochOrder order(order_plan(OrderMode::kBlock), even_layout(331'000, 16), 0);
  std::map<std::pair<std::uint64_t, std::uint64_t>, double> tenths;
  for (std::uint64_t n = 0; n < order.size(); ++n) {
    tenths[{n * 10 / order.size(), order.at(n) * 10 / order.size()}] += 1;
  }
  ASSERT_EQ(tenths.size(), 100U);
  for (const auto& [where, count] : tenths)
    EXPECT_NEAR(count, 3310, 900) << where.first;
}

TEST(EpochOrderTest, TenBillionSamplesStandWhereTheySay) {
  const std::uint64_t samples = 10'000'000'000;
  for (const OrderMode mode : {OrderMode::kBlock, OrderMode::kFull}) {
    const auto layout = layout_of({{.samples = samples, .bytes = samples * 4096}});
    const EpochOrder order(order_plan(mode), layout, 5);
    std::set<std::uint64_t> seen;
    for (std::uint64_t n = 0; n < 1000; ++n) {
      const std::uint64_t sample = order.at(n * 10'000'019 % samples);
      EXPECT_LT(sample, samples);
      EXPECT_TRUE(seen.insert(sample).second);
    }
  }
}

TEST(OrderModeTest, HasNamesAndRefusesOthers) {
  for (const OrderMode mode : {OrderMode::kNone, OrderMode::kBlock, OrderMode::kFull}) {
    EXPECT_EQ(parse_order_mode(order_mode_name(mode)).value(), mode);
  }
  EXPECT_EQ(parse_order_mode("py1e").error().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
