// Eviction against a map: whatever is done, what is there and how much of it must agree.

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "cache/eviction.h"

namespace millrace {
namespace {

constexpr std::uint32_t kModelObjects = 8;

class EvictionModel {
 public:
  EvictionModel(std::uint64_t seed, std::uint32_t object_blocks)
      : random_(seed), object_blocks_(object_blocks) {}

  void step() {
    const BlockId block = any_block();
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return insert(block);
      case 4:
      case 5:
        return touch(block);
      case 6:
        return erase(block);
      case 7:
        return hold(block);
      case 8:
      case 9:
        return release(block);
      case 10:
      case 11:
        return pop();
      case 12:
        return announce();
      case 13:
        return advance();
      case 14:
        return withdraw();
      default:
        (void)eviction_.worth_keeping(block, any_plan());
    }
  }

  void check() {
    std::uint64_t bytes = 0;
    std::uint64_t held_bytes = 0;
    for (const auto& [key, known] : blocks_) {
      ASSERT_TRUE(eviction_.contains({key.first, key.second}));
      bytes += known.bytes;
      held_bytes += known.holds > 0 ? known.bytes : 0;
    }
    ASSERT_EQ(eviction_.entries(), blocks_.size());
    ASSERT_EQ(eviction_.bytes(), bytes);
    ASSERT_EQ(eviction_.held_bytes(), held_bytes);
  }

  // Lets go of everything. All of it must come out.
  void drain() {
    for (auto& [key, known] : blocks_) {
      for (; known.holds > 0; --known.holds)
        EXPECT_TRUE(eviction_.release({key.first, key.second}));
    }
    while (!blocks_.empty() && !::testing::Test::HasFatalFailure())
      pop();
    EXPECT_EQ(eviction_.pop_victim(), std::nullopt);
    EXPECT_EQ(eviction_.bytes(), 0U);
    EXPECT_EQ(eviction_.planned_bytes(), 0U);
    EXPECT_EQ(eviction_.entries(), 0U);
    while (!plans_.empty())
      withdraw();
    EXPECT_EQ(eviction_.plans().memory_bytes(), 0U);
  }

 private:
  struct Known {
    std::uint32_t bytes = 0;
    std::uint32_t holds = 0;
  };
  struct AnnouncedPlan {
    PlanId id;
    std::uint64_t reads = 0;
  };
  using Key = std::pair<std::uint32_t, std::uint32_t>;

  std::uint64_t below(std::uint64_t limit) { return random_.next() % limit; }
  BlockId any_block() {
    return {static_cast<std::uint32_t>(below(kModelObjects)),
            static_cast<std::uint32_t>(below(object_blocks_))};
  }
  std::optional<PlanId> any_plan() {
    if (plans_.empty()) return std::nullopt;
    return plans_[below(plans_.size())].id;
  }

  void insert(BlockId block) {
    const auto bytes = static_cast<std::uint32_t>(1 + below(1 << 20));
    eviction_.insert(block, bytes);
    blocks_[{block.object, block.block}].bytes = bytes;
  }
  void touch(BlockId block) {
    EXPECT_EQ(eviction_.touch(block), blocks_.contains({block.object, block.block}));
  }
  void erase(BlockId block) {
    EXPECT_EQ(eviction_.erase(block), blocks_.erase({block.object, block.block}) == 1);
  }
  void hold(BlockId block) {
    const auto found = blocks_.find({block.object, block.block});
    EXPECT_EQ(eviction_.hold(block), found != blocks_.end());
    if (found != blocks_.end()) ++found->second.holds;
  }
  void release(BlockId block) {
    const auto found = blocks_.find({block.object, block.block});
    const bool is_held = found != blocks_.end() && found->second.holds > 0;
    EXPECT_EQ(eviction_.release(block), is_held);
    if (is_held) --found->second.holds;
  }
  void pop() {
    const auto victim = eviction_.pop_victim();
    if (!victim) {
      for (const auto& [key, known] : blocks_)
        ASSERT_GT(known.holds, 0U) << key.first << "/" << key.second << " could have gone";
      return;
    }
    const auto found = blocks_.find({victim->object, victim->block});
    ASSERT_NE(found, blocks_.end());
    ASSERT_EQ(found->second.holds, 0U);
    blocks_.erase(found);
  }
  void announce() {
    std::vector<PlannedBlock> reads(below(std::uint64_t{3} * object_blocks_));
    for (PlannedBlock& read : reads)
      read = {.block = any_block(), .bytes = static_cast<std::uint32_t>(below(1 << 20))};
    if (!plans_.empty() && below(2) == 0) {
      AnnouncedPlan& plan = plans_[below(plans_.size())];
      plan.reads += reads.size();
      EXPECT_TRUE(eviction_.extend(plan.id, ReadPlanStretch(std::move(reads))).ok());
    } else if (plans_.size() < 5) {
      const std::size_t count = reads.size();
      const auto id = eviction_.announce(ReadPlanStretch(std::move(reads)));
      ASSERT_TRUE(id);
      plans_.push_back({.id = *id, .reads = count});
    }
  }
  void advance() {
    if (plans_.empty()) return;
    const AnnouncedPlan& plan = plans_[below(plans_.size())];
    const std::uint64_t position =
        *eviction_.plans().position(plan.id) + below(object_blocks_ / 2 + 1);
    EXPECT_EQ(eviction_.advance(plan.id, position).ok(), position <= plan.reads);
  }
  void withdraw() {
    if (plans_.empty()) return;
    const auto plan = plans_.begin() + static_cast<std::ptrdiff_t>(below(plans_.size()));
    EXPECT_TRUE(eviction_.withdraw(plan->id));
    EXPECT_FALSE(eviction_.withdraw(plan->id));
    plans_.erase(plan);
  }

  SeededRandom random_;
  std::uint32_t object_blocks_;
  Eviction eviction_;
  std::map<Key, Known> blocks_;
  std::vector<AnnouncedPlan> plans_;
};

TEST(EvictionModel, AgreesWithAMapWhateverIsDone) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    EvictionModel model(seed, seed % 2 == 0 ? 4 : 100);
    for (int step = 0; step < 5000 && !::testing::Test::HasFatalFailure(); ++step) {
      model.step();
      if (step % 16 == 0) model.check();
    }
    model.drain();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace millrace
