#include "cache/read_plan.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace millrace {
namespace {

// Reads of 10, 20, 30, ... bytes of these blocks.
ReadPlanStretch growing_reads(const std::vector<std::uint32_t>& blocks) {
  std::vector<PlannedBlock> reads;
  for (const std::uint32_t block : blocks) {
    reads.push_back(
        {.block = {1, block}, .bytes = static_cast<std::uint32_t>(10 * (reads.size() + 1))});
  }
  return ReadPlanStretch(std::move(reads));
}

void ignore_change(BlockId /*block*/) {}

std::optional<std::uint64_t> distance_of(const ReadPlans& plans, std::uint32_t block) {
  const auto use = plans.next_use({1, block});
  if (!use) return std::nullopt;
  return use->distance_bytes;
}

TEST(ReadPlans, TellsTheBytesUntilTheNextUse) {
  ReadPlans plans;
  const auto plan = plans.announce(growing_reads({7, 8, 7, 9}));
  ASSERT_TRUE(plan);
  EXPECT_EQ(distance_of(plans, 7), 0U);
  EXPECT_EQ(distance_of(plans, 8), 10U);
  EXPECT_EQ(distance_of(plans, 9), 60U);
  EXPECT_EQ(distance_of(plans, 6), std::nullopt);
  std::vector<std::uint32_t> changed;
  const auto read = plans.advance(*plan, 2, [&](BlockId block) { changed.push_back(block.block); });
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, 30U);
  EXPECT_EQ(changed, (std::vector<std::uint32_t>{7, 8}));
  EXPECT_EQ(plans.position(*plan), 2U);
  EXPECT_EQ(distance_of(plans, 7), 0U);
  EXPECT_EQ(distance_of(plans, 8), std::nullopt);
  EXPECT_EQ(distance_of(plans, 9), 30U);
  EXPECT_EQ(plans.next_use({1, 9})->position, 3U);
}

TEST(ReadPlans, AReadThatIsBeingMadeDoesNotCount) {
  ReadPlans plans;
  const auto plan = plans.announce(growing_reads({7, 8, 7}));
  ASSERT_TRUE(plan);
  ASSERT_TRUE(plans.extend(*plan, growing_reads({8})).ok());
  EXPECT_EQ(plans.next_use_after_read({1, 7}, *plan)->position, 2U);
  EXPECT_EQ(plans.next_use_after_read({1, 8}, *plan)->position, 3U) << "in the next stretch";
  EXPECT_EQ(plans.next_use_after_read({1, 7}, PlanId(99))->position, 0U);
  ASSERT_TRUE(plans.announce(growing_reads({5, 7})));
  EXPECT_EQ(plans.next_use_after_read({1, 7}, *plan)->distance_bytes, 10U) << "by the other plan";
}

TEST(ReadPlans, GoesOnWhereItWasExtended) {
  ReadPlans plans;
  const auto plan = plans.announce(growing_reads({1, 2}));
  ASSERT_TRUE(plan);
  const std::uint64_t one_epoch_bytes = plans.memory_bytes();
  ASSERT_TRUE(plans.extend(*plan, growing_reads({})).ok());
  ASSERT_TRUE(plans.extend(*plan, growing_reads({2, 1})).ok());
  EXPECT_EQ(plans.memory_bytes(), 2 * one_epoch_bytes);
  ASSERT_TRUE(plans.advance(*plan, 1, ignore_change));
  EXPECT_EQ(distance_of(plans, 1), 30U);
  ASSERT_TRUE(plans.advance(*plan, 2, ignore_change));
  EXPECT_EQ(plans.memory_bytes(), one_epoch_bytes) << "an epoch that is over is forgotten";
  EXPECT_EQ(distance_of(plans, 2), 0U);
  ASSERT_TRUE(plans.advance(*plan, 4, ignore_change));
  EXPECT_EQ(plans.memory_bytes(), 0U);
  EXPECT_EQ(distance_of(plans, 2), std::nullopt);
  ASSERT_TRUE(plans.extend(*plan, growing_reads({2})).ok());
  EXPECT_EQ(plans.next_use({1, 2})->position, 4U);
}

TEST(ReadPlans, RefusesWhatMakesNoSense) {
  ReadPlans plans;
  const auto plan = plans.announce(growing_reads({1, 2}));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plans.advance(*plan, 3, ignore_change).error(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(plans.advance(*plan, 2, ignore_change));
  EXPECT_EQ(plans.advance(*plan, 1, ignore_change), 0U) << "a late report changes nothing";
  EXPECT_EQ(plans.position(*plan), 2U);
  EXPECT_TRUE(plans.withdraw(*plan));
  EXPECT_FALSE(plans.withdraw(*plan));
  EXPECT_EQ(plans.advance(*plan, 2, ignore_change).error(), StatusCode::kNotFound);
  EXPECT_EQ(plans.extend(*plan, growing_reads({1})), StatusCode::kNotFound);
  EXPECT_EQ(plans.position(*plan), std::nullopt);
  EXPECT_EQ(plans.distance_bytes(*plan, 0), std::nullopt);
}

TEST(ReadPlans, KeepsItsLimits) {
  ReadPlans plans({.plans_max = 2, .memory_bytes_max = 1000});
  const auto first = plans.announce(growing_reads({1}));
  ASSERT_TRUE(first);
  const std::uint64_t used = plans.memory_bytes();
  const ReadPlanStretch large = growing_reads(std::vector<std::uint32_t>(100, 1));
  EXPECT_EQ(plans.announce(large).error(), StatusCode::kResourceExhausted);
  EXPECT_EQ(plans.extend(*first, large), StatusCode::kResourceExhausted);
  EXPECT_EQ(plans.memory_bytes(), used);
  ASSERT_TRUE(plans.announce(growing_reads({2})));
  EXPECT_EQ(plans.announce(growing_reads({3})).error(), StatusCode::kResourceExhausted);
  plans.withdraw(*first);
  EXPECT_TRUE(plans.announce(growing_reads({3}))) << "there is room again";
}

TEST(ReadPlans, ListsWhatIsReadSoon) {
  ReadPlans plans;
  const auto plan = plans.announce(growing_reads({1, 2, 3}));
  ASSERT_TRUE(plan);
  ASSERT_TRUE(plans.extend(*plan, growing_reads({4, 5})).ok());
  const auto positions = [&](std::uint64_t from, std::uint64_t bytes, std::size_t count) {
    std::vector<std::uint64_t> listed;
    for (const UpcomingRead& read : plans.upcoming(*plan, from, bytes, count)) {
      EXPECT_EQ(read.read.block.block, read.position + 1);
      listed.push_back(read.position);
    }
    return listed;
  };
  using Positions = std::vector<std::uint64_t>;
  EXPECT_EQ(positions(0, 30, 9), (Positions{0, 1}));
  EXPECT_EQ(positions(0, 31, 9), (Positions{0, 1, 2}));
  EXPECT_EQ(positions(0, 1000, 9), (Positions{0, 1, 2, 3, 4}));
  EXPECT_EQ(positions(0, 1000, 2), (Positions{0, 1}));
  EXPECT_EQ(positions(2, 1000, 2), (Positions{2, 3}));
  EXPECT_EQ(positions(5, 1000, 2), Positions{});
  ASSERT_TRUE(plans.advance(*plan, 3, ignore_change));
  EXPECT_EQ(positions(0, 10, 9), (Positions{3}));
  EXPECT_EQ(positions(0, 0, 9), Positions{});
  plans.withdraw(*plan);
  EXPECT_EQ(positions(0, 1000, 9), Positions{});
}

TEST(ReadPlans, APlannedReadCostsAtMost24Bytes) {
  for (const std::size_t reads : {std::size_t{1000}, std::size_t{10'000'000}})
    EXPECT_LE(ReadPlanStretch::memory_bytes(reads), reads * 24);
}

// The same questions answered by looking through the list.
class ModelReadPlan {
 public:
  std::vector<PlannedBlock> more(Random& random, std::size_t count) {
    std::vector<PlannedBlock> reads(count);
    for (PlannedBlock& read : reads) {
      read.block = {static_cast<std::uint32_t>(random.next() % 3),
                    static_cast<std::uint32_t>(random.next() % 20)};
      read.bytes = static_cast<std::uint32_t>(random.next() % 1000);
    }
    reads_.insert(reads_.end(), reads.begin(), reads.end());
    return reads;
  }
  std::optional<std::uint64_t> distance(BlockId block) const {
    std::uint64_t bytes = 0;
    for (std::size_t index = position; index < reads_.size(); ++index) {
      if (reads_[index].block == block) return bytes;
      bytes += reads_[index].bytes;
    }
    return std::nullopt;
  }
  std::size_t size() const { return reads_.size(); }
  const PlannedBlock& read(std::size_t index) const { return reads_[index]; }

  std::size_t position = 0;
  PlanId id;

 private:
  std::vector<PlannedBlock> reads_;
};

void compare_with_models(const ReadPlans& plans, const std::vector<ModelReadPlan>& models) {
  for (std::uint32_t object = 0; object < 3; ++object) {
    for (std::uint32_t number = 0; number < 20; ++number) {
      const BlockId block{object, number};
      std::optional<std::uint64_t> nearest;
      for (const ModelReadPlan& model : models) {
        const auto distance = model.distance(block);
        if (distance && (!nearest || *distance < *nearest)) nearest = distance;
      }
      const auto use = plans.next_use(block);
      ASSERT_EQ(use.has_value(), nearest.has_value());
      if (!use) continue;
      ASSERT_EQ(use->distance_bytes, *nearest);
      ASSERT_EQ(plans.distance_bytes(use->plan, use->position), *nearest);
    }
  }
  for (const ModelReadPlan& model : models) {
    const auto upcoming = plans.upcoming(model.id, 0, UINT64_MAX, SIZE_MAX);
    ASSERT_EQ(upcoming.size(), model.size() - model.position);
    for (const UpcomingRead& read : upcoming)
      ASSERT_EQ(read.read, model.read(read.position));
  }
}

TEST(ReadPlans, AgreesWithLookingThroughTheLists) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    SeededRandom random(seed);
    ReadPlans plans;
    std::vector<ModelReadPlan> models;
    for (int step = 0; step < 200; ++step) {
      const std::uint64_t dice = random.next() % 10;
      if (models.empty() || (dice == 0 && models.size() < 4)) {
        models.emplace_back();
        const auto id =
            plans.announce(ReadPlanStretch(models.back().more(random, random.next() % 150)));
        ASSERT_TRUE(id);
        models.back().id = *id;
      }
      ModelReadPlan& model = models[random.next() % models.size()];
      if (dice == 1) {
        ASSERT_TRUE(
            plans.extend(model.id, ReadPlanStretch(model.more(random, random.next() % 80))).ok());
      } else if (dice == 2 && random.next() % 8 == 0) {
        ASSERT_TRUE(plans.withdraw(model.id));
        models.erase(models.begin() + (&model - models.data()));
      } else {
        model.position = std::min(model.position + random.next() % 10, model.size());
        ASSERT_TRUE(plans.advance(model.id, model.position, ignore_change));
      }
      compare_with_models(plans, models);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace millrace
