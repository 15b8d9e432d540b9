// Victims among planned blocks, and who goes when planned and unplanned ones meet.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/random.h"
#include "cache/eviction.h"

namespace millrace {
namespace {

constexpr std::uint32_t kEqualBytes = kMiB;

// Reads of blocks of object 1.
ReadPlanStretch stretch_of(const std::vector<std::uint32_t>& blocks,
                           std::uint32_t bytes = kEqualBytes) {
  std::vector<PlannedBlock> reads;
  for (const std::uint32_t block : blocks)
    reads.push_back({.block = {1, block}, .bytes = bytes});
  return ReadPlanStretch(std::move(reads));
}

void insert_blocks(Eviction& eviction, std::uint32_t object, std::uint32_t count) {
  for (std::uint32_t block = 0; block < count; ++block)
    eviction.insert({object, block}, kEqualBytes);
}

TEST(PlannedEviction, TheBlockThatIsUsedLastGoesFirst) {
  Eviction eviction;
  const auto plan = eviction.announce(stretch_of({2, 0, 3, 1, 2}));
  ASSERT_TRUE(plan);
  insert_blocks(eviction, 1, 4);
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 1}));
  ASSERT_TRUE(eviction.advance(*plan, 1).ok());
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 2})) << "its first use is over";
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 3}));
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 0}));
}

TEST(PlannedEviction, ANewPlanIsHeededForBlocksThatAreThere) {
  Eviction eviction;
  insert_blocks(eviction, 1, 5);
  ASSERT_TRUE(eviction.announce(stretch_of({4, 0, 3, 1}, kEqualBytes / 8)));
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 2})) << "no plan reads it";
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 1}));
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 3}));
}

TEST(PlannedEviction, TheNearestUseOfAllPlansCounts) {
  Eviction eviction;
  ASSERT_TRUE(eviction.announce(stretch_of({0, 1, 2, 3})));
  insert_blocks(eviction, 1, 4);
  ASSERT_TRUE(eviction.announce(stretch_of({3, 2})));
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 1}));
}

TEST(PlannedEviction, AWithdrawnPlanProtectsNothing) {
  Eviction eviction;
  const auto first = eviction.announce(stretch_of({0, 1}));
  const auto second = eviction.announce(stretch_of({2, 3}));
  ASSERT_TRUE(first && second);
  insert_blocks(eviction, 1, 4);
  EXPECT_TRUE(eviction.withdraw(*first));
  std::vector<std::uint32_t> gone{eviction.pop_victim()->block, eviction.pop_victim()->block};
  std::ranges::sort(gone);
  EXPECT_EQ(gone, (std::vector<std::uint32_t>{0, 1}));
}

TEST(PlannedEviction, AWithdrawnPlanOfManyBlocksIsSortedOut) {
  Eviction eviction;
  std::vector<std::uint32_t> numbers(1000);
  for (std::uint32_t number = 0; number < numbers.size(); ++number)
    numbers[number] = number;
  const auto plan = eviction.announce(stretch_of(numbers));
  ASSERT_TRUE(plan);
  insert_blocks(eviction, 1, 1000);
  EXPECT_EQ(eviction.planned_bytes(), 1000 * kMiB);
  eviction.withdraw(*plan);
  for (int count = 0; count < 1000; ++count)
    ASSERT_TRUE(eviction.pop_victim());
  EXPECT_EQ(eviction.entries(), 0U);
}

TEST(PlannedEviction, AHeldBlockReturnsToItsPlan) {
  Eviction eviction;
  ASSERT_TRUE(eviction.announce(stretch_of({0, 1, 2})));
  insert_blocks(eviction, 1, 3);
  eviction.hold({1, 2});
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 1}));
  eviction.release({1, 2});
  EXPECT_EQ(eviction.planned_bytes(), 2 * kMiB);
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 2}));
}

TEST(PlannedEviction, ABlockThatIsUsedLaterThanAllOthersIsNotWorthKeeping) {
  Eviction eviction;
  const auto plan = eviction.announce(stretch_of({9, 0, 1, 8, 2, 9}));
  ASSERT_TRUE(plan);
  insert_blocks(eviction, 1, 3);
  EXPECT_TRUE(eviction.worth_keeping({1, 8})) << "block 2 is used later";
  EXPECT_TRUE(eviction.worth_keeping({1, 9})) << "it will be read next: a prefetch";
  EXPECT_FALSE(eviction.worth_keeping({1, 9}, *plan)) << "it is being read; then it is the last";
  EXPECT_TRUE(eviction.worth_keeping({1, 8}, PlanId(77))) << "a reader without a plan";
  EXPECT_TRUE(eviction.worth_keeping({5, 5})) << "unplanned: it has its trial";
  ASSERT_TRUE(eviction.advance(*plan, 1).ok());
  EXPECT_FALSE(eviction.worth_keeping({1, 9}));
}

TEST(PlannedEviction, AnythingIsWorthMoreThanAFailedTrial) {
  Eviction eviction;
  insert_blocks(eviction, 2, 3);  // Unplanned, never used again.
  ASSERT_TRUE(eviction.announce(stretch_of({0, 1, 2, 3})));
  EXPECT_TRUE(eviction.worth_keeping({1, 3}));
  eviction.insert({1, 3}, kEqualBytes);
  EXPECT_EQ(eviction.pop_victim()->object, 2U);
}

// A job with a plan reads far more than the cache holds. One without uses a few blocks all the
// time.
TEST(PlannedEviction, UnplannedBlocksThatAreUsedOutlastAPlan) {
  constexpr std::uint32_t kCacheBlocks = 200;
  constexpr std::uint32_t kEpochBlocks = 1000;
  constexpr std::uint32_t kUsed = 50;
  Eviction eviction;
  std::vector<std::uint32_t> epoch(kEpochBlocks);
  for (std::uint32_t block = 0; block < kEpochBlocks; ++block)
    epoch[block] = block;
  const auto plan = eviction.announce(stretch_of(epoch));
  ASSERT_TRUE(plan);
  const auto read = [&](BlockId block, std::optional<PlanId> reader) {
    if (eviction.touch(block)) return true;
    if (eviction.entries() >= kCacheBlocks) {
      if (!eviction.worth_keeping(block, reader)) return false;
      eviction.pop_victim();
    }
    eviction.insert(block, kEqualBytes);
    return false;
  };
  std::uint32_t unplanned_hits = 0;
  std::uint32_t planned_hits = 0;
  std::uint64_t position = 0;
  for (int number = 0; number < 6; ++number) {
    ASSERT_TRUE(eviction.extend(*plan, stretch_of(epoch)).ok());
    for (std::uint32_t block = 0; block < kEpochBlocks; ++block) {
      unplanned_hits += read({2, block % kUsed}, std::nullopt) ? 1 : 0;
      planned_hits += read({1, block}, *plan) ? 1 : 0;
      ASSERT_TRUE(eviction.advance(*plan, ++position).ok());
    }
  }
  EXPECT_GE(unplanned_hits, 6 * kEpochBlocks - 2 * kUsed);
  EXPECT_GE(planned_hits, 5 * 100U) << "and the plan has nearly all of the rest";

  // The unplanned job ends. What it used goes to the plan within an epoch or two.
  planned_hits = 0;
  for (int number = 0; number < 3; ++number) {
    ASSERT_TRUE(eviction.extend(*plan, stretch_of(epoch)).ok());
    planned_hits = 0;
    for (std::uint32_t block = 0; block < kEpochBlocks; ++block) {
      planned_hits += read({1, block}, *plan) ? 1 : 0;
      ASSERT_TRUE(eviction.advance(*plan, ++position).ok());
    }
  }
  EXPECT_GE(planned_hits, 190U);
}

// All plans as lists, and Belady's rule by looking through them.
class PlannedModel {
 public:
  PlannedModel(std::uint64_t seed, std::uint32_t blocks) : random_(seed), blocks_(blocks) {
    announce();  // This one stays, and has each block twice to begin with.
  }

  void announce() {
    std::vector<PlannedBlock> reads = everything();
    const auto id = eviction_.announce(ReadPlanStretch(reads));
    ASSERT_TRUE(id);
    plans_.push_back({.id = *id, .position = 0, .reads = std::move(reads)});
  }
  void withdraw_last() {
    if (plans_.size() < 2) return;
    eviction_.withdraw(plans_.back().id);
    plans_.pop_back();
  }
  void insert_any() { insert({1, static_cast<std::uint32_t>(below(blocks_))}); }
  void advance_any() {
    ModelPlan& plan = plans_[below(plans_.size())];
    plan.position += below(4);
    if (plan.position + std::uint64_t{2} * blocks_ > plan.reads.size()) {
      const std::vector<PlannedBlock> more = everything();
      plan.reads.insert(plan.reads.end(), more.begin(), more.end());
      ASSERT_TRUE(eviction_.extend(plan.id, ReadPlanStretch(more)).ok());
    }
    ASSERT_TRUE(eviction_.advance(plan.id, plan.position).ok());
  }
  void pop_and_compare() {
    if (cached_.empty()) return;
    std::uint64_t furthest = 0;
    for (const BlockId block : cached_)
      furthest = std::max(furthest, distance_bytes(block));
    const auto victim = eviction_.pop_victim();
    ASSERT_TRUE(victim);
    ASSERT_EQ(distance_bytes(*victim), furthest) << "block " << victim->block;
    ASSERT_EQ(std::erase(cached_, *victim), 1U);
  }
  void ask_and_compare() {
    const BlockId block{1, static_cast<std::uint32_t>(below(blocks_))};
    std::uint64_t furthest = 0;
    for (const BlockId other : cached_)
      furthest = std::max(furthest, distance_bytes(other));
    const bool expected = cached_.empty() || distance_bytes(block) < furthest;
    ASSERT_EQ(eviction_.worth_keeping(block), expected);
  }
  std::uint64_t below(std::uint64_t limit) { return random_.next() % limit; }

 private:
  struct ModelPlan {
    PlanId id;
    std::uint64_t position = 0;
    std::vector<PlannedBlock> reads;
  };

  void insert(BlockId block) {
    if (std::ranges::find(cached_, block) == cached_.end()) cached_.push_back(block);
    eviction_.insert(block, kEqualBytes);
  }
  // Each block at least twice, in any order, so that no block is ever without a use.
  std::vector<PlannedBlock> everything() {
    std::vector<PlannedBlock> reads;
    for (std::uint32_t block = 0; block < 2 * blocks_; ++block) {
      reads.push_back({.block = {1, block % blocks_},
                       .bytes = static_cast<std::uint32_t>(1 + below(kEqualBytes))});
    }
    for (std::size_t left = reads.size(); left > 1; --left)
      std::swap(reads[left - 1], reads[below(left)]);
    return reads;
  }
  std::uint64_t distance_bytes(BlockId block) const {
    std::uint64_t nearest = UINT64_MAX;
    for (const ModelPlan& plan : plans_) {
      std::uint64_t distance = 0;
      for (std::size_t index = plan.position; index < plan.reads.size(); ++index) {
        if (plan.reads[index].block == block) {
          nearest = std::min(nearest, distance);
          break;
        }
        distance += plan.reads[index].bytes;
      }
    }
    return nearest;
  }

  SeededRandom random_;
  std::uint32_t blocks_;
  Eviction eviction_;
  std::vector<BlockId> cached_;
  std::vector<ModelPlan> plans_;
};

TEST(PlannedEviction, TheVictimIsTheOneThatLookingThroughAllPlansFinds) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    PlannedModel model(seed, 40);
    for (int step = 0; step < 1500 && !::testing::Test::HasFatalFailure(); ++step) {
      switch (model.below(8)) {
        case 0:
        case 1:
        case 2:
          model.insert_any();
          break;
        case 3:
        case 4:
          model.advance_any();
          break;
        case 5:
          model.ask_and_compare();
          break;
        case 6:
          model.pop_and_compare();
          break;
        default:
          if (model.below(10) != 0) break;
          if (model.below(2) == 0) {
            model.announce();
          } else {
            model.withdraw_last();
          }
      }
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace millrace
