#include "cache/cache_space.h"

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cache/unit.h"
#include "tests/cache/stored_content.h"

namespace millrace {
namespace {

ObjectDigest space_digest(std::uint64_t n) {
  return stored_version("s" + std::to_string(n), 64 * kMiB).digest();
}

TEST(CacheSpace, ReservesUpToTheLimit) {
  CacheSpace space(100);
  EXPECT_TRUE(space.try_reserve(60));
  EXPECT_FALSE(space.try_reserve(41));
  EXPECT_TRUE(space.try_reserve(40));
  EXPECT_EQ(space.used_bytes(), 0u) << "a reservation is not used yet";
  space.unreserve(40);
  space.fill(space_digest(1), 0, 60);
  EXPECT_EQ(space.used_bytes(), 60u);
  EXPECT_FALSE(space.try_reserve(41));
  space.set_limit(50);
  EXPECT_FALSE(space.try_reserve(0)) << "the limit sank below what is used";
  EXPECT_EQ(space.limit_bytes(), 50u);
  space.remove(space_digest(1), 0);
  EXPECT_EQ(space.used_bytes(), 0u);
  EXPECT_TRUE(space.try_reserve(50));
}

TEST(CacheSpace, IsOverTheLimitWithWhatIsAboutToBeWritten) {
  CacheSpace space(100);
  ASSERT_TRUE(space.try_reserve(40));
  space.found(space_digest(1), 0, 60);
  EXPECT_FALSE(space.is_over_limit());
  space.found(space_digest(1), 0, 61);
  EXPECT_TRUE(space.is_over_limit()) << "it would be as soon as the 40 are written";
  space.unreserve(1);
  EXPECT_FALSE(space.is_over_limit());
  space.unreserve(39);
}

TEST(CacheSpace, AVictimThatIsFilledMeanwhileIsInTheOrderAgain) {
  CacheSpace space(100);
  space.found(space_digest(1), 0, 60);
  const auto victim = space.pop_victim();
  ASSERT_TRUE(victim && space.try_reserve(10));
  space.fill(space_digest(1), 0, 10);
  EXPECT_EQ(space.used_bytes(), 70u);
  space.keep(*victim);
  EXPECT_EQ(space.used_bytes(), 70u);
  EXPECT_EQ(space.pop_victim()->bytes, 70u);
  EXPECT_FALSE(space.pop_victim());
}

TEST(CacheSpace, ABlockIsFilledInParts) {
  CacheSpace space(1000);
  ASSERT_TRUE(space.try_reserve(30));
  space.fill(space_digest(1), 2, 10);
  space.fill(space_digest(1), 2, 20);
  const auto victim = space.pop_victim();
  ASSERT_TRUE(victim);
  EXPECT_EQ(victim->digest, space_digest(1));
  EXPECT_EQ(victim->block, 2u);
  EXPECT_EQ(victim->bytes, 30u);
}

TEST(CacheSpace, WhatIsFoundTwiceCountsOnce) {
  CacheSpace space(1000);
  space.found(space_digest(1), 0, 10);
  space.found(space_digest(1), 0, 10);
  EXPECT_EQ(space.used_bytes(), 10u);
  space.found(space_digest(1), 0, 5);
  EXPECT_EQ(space.used_bytes(), 10u);
  space.found(space_digest(1), 0, 12);
  EXPECT_EQ(space.used_bytes(), 12u);
  space.found(space_digest(2), 0, 0);
  EXPECT_EQ(space.digests().size(), 1u);
}

TEST(CacheSpace, APoppedVictimCountsUntilItIsRemoved) {
  CacheSpace space(100);
  space.found(space_digest(1), 0, 60);
  const auto victim = space.pop_victim();
  ASSERT_TRUE(victim);
  EXPECT_EQ(space.used_bytes(), 60u);
  EXPECT_FALSE(space.try_reserve(50));
  EXPECT_FALSE(space.pop_victim()) << "it is out of the order";
  space.remove(victim->digest, victim->block);
  space.remove(victim->digest, victim->block);
  EXPECT_TRUE(space.try_reserve(100));
}

TEST(CacheSpace, AKeptVictimComesBack) {
  CacheSpace space(100);
  space.found(space_digest(1), 0, 60);
  const auto victim = space.pop_victim();
  ASSERT_TRUE(victim);
  space.keep(*victim);
  space.keep(*victim);
  EXPECT_EQ(space.used_bytes(), 60u);
  EXPECT_EQ(space.pop_victim()->digest, space_digest(1));
  EXPECT_FALSE(space.pop_victim());
  space.remove(space_digest(1), 0);
  space.keep(*victim);
  EXPECT_FALSE(space.pop_victim()) << "it has gone meanwhile";
}

TEST(CacheSpace, HeldBlocksAreNoVictims) {
  CacheSpace space(100);
  space.found(space_digest(1), 0, 10);
  space.found(space_digest(1), 1, 20);
  space.hold(space_digest(1), 1);
  space.hold(space_digest(1), 1);
  EXPECT_EQ(space.held_bytes(), 20u);
  EXPECT_EQ(space.pop_victim()->block, 0u);
  EXPECT_FALSE(space.pop_victim());
  space.release(space_digest(1), 1);
  EXPECT_FALSE(space.pop_victim()) << "holds are counted";
  space.release(space_digest(1), 1);
  space.release(space_digest(1), 1);
  EXPECT_EQ(space.held_bytes(), 0u);
  EXPECT_EQ(space.pop_victim()->block, 1u);
}

TEST(CacheSpace, AHoldWaitsForItsBlock) {
  CacheSpace space(100);
  space.hold(space_digest(1), 3);
  EXPECT_EQ(space.held_bytes(), 0u);
  space.found(space_digest(1), 3, 10);
  EXPECT_EQ(space.held_bytes(), 10u);
  EXPECT_FALSE(space.pop_victim());
  // It goes for another reason, and comes again.
  space.remove(space_digest(1), 3);
  EXPECT_EQ(space.held_bytes(), 0u);
  space.found(space_digest(1), 3, 20);
  EXPECT_EQ(space.held_bytes(), 20u);
  EXPECT_FALSE(space.pop_victim());
  space.release(space_digest(1), 3);
  EXPECT_EQ(space.pop_victim()->bytes, 20u);
}

TEST(CacheSpace, AVictimThatIsHeldMeanwhileIsKept) {
  CacheSpace space(100);
  space.found(space_digest(1), 0, 10);
  const auto victim = space.pop_victim();
  space.hold(space_digest(1), 0);
  space.keep(*victim);
  EXPECT_EQ(space.held_bytes(), 10u);
  EXPECT_FALSE(space.pop_victim());
}

TEST(CacheSpace, AHoldIsOnAnObjectAndNotOnItsNumber) {
  CacheSpace space(1000);
  space.hold(space_digest(1), 0);
  space.release(space_digest(1), 0);
  space.found(space_digest(2), 0, 10);
  EXPECT_EQ(space.pop_victim()->digest, space_digest(2));
  space.remove(space_digest(2), 0);
  space.found(space_digest(3), 0, 10);
  space.found(space_digest(3), 1, 20);
  space.remove_object(space_digest(3));
  EXPECT_EQ(space.used_bytes(), 0u);
  space.found(space_digest(4), 1, 10);
  EXPECT_EQ(space.used_bytes(), 10u);
  EXPECT_EQ(space.pop_victim()->digest, space_digest(4));
}

TEST(CacheSpace, UnlinkedBytesTakeSpaceUntilTheyAreReturned) {
  CacheSpace space(100);
  space.found(space_digest(1), 0, 60);
  space.remove_object(space_digest(1), 60);
  EXPECT_EQ(space.used_bytes(), 60u);
  EXPECT_FALSE(space.try_reserve(50));
  EXPECT_FALSE(space.pop_victim());
  space.remove_unlinked(60);
  EXPECT_TRUE(space.try_reserve(100));
  space.unreserve(100);
  // The holder may be the faster one.
  space.remove_unlinked(30);
  EXPECT_EQ(space.used_bytes(), 0u);
  EXPECT_FALSE(space.try_reserve(101));
  space.remove_object(space_digest(1), 30);
  EXPECT_EQ(space.used_bytes(), 0u);
}

// The books against a map.
class SpaceModel {
 public:
  explicit SpaceModel(std::uint64_t seed) : random_(seed) {}

  void step() {
    const Name name{random_() % 12, static_cast<std::uint32_t>(random_() % 5)};
    const ObjectDigest digest = space_digest(name.first);
    const auto bytes = static_cast<std::uint32_t>(1 + random_() % 1000);
    switch (random_() % 11) {
      case 0:
      case 1:
      case 2:
        fill(name, bytes);
        break;
      case 3:
        space_.found(digest, name.second, bytes);
        if (bytes > blocks_[name].bytes) put(name, bytes);
        break;
      case 4:
        pop();
        break;
      case 5:
        settle_popped();
        break;
      case 6:
        space_.hold(digest, name.second);
        ++blocks_[name].holds;
        break;
      case 7:
        space_.release(digest, name.second);
        if (blocks_[name].holds > 0) --blocks_[name].holds;
        break;
      case 8:
        space_.touch(digest, name.second);
        break;
      case 9:
        if (random_() % 4 == 0) {
          space_.remove_object(digest);
          for (auto& [other, block] : blocks_) {
            if (other.first == name.first) block.bytes = 0;
          }
        } else {
          space_.remove(digest, name.second);
          blocks_[name].bytes = 0;
        }
        break;
      case 10:
        limit_ = 1 + random_() % 20'000;
        space_.set_limit(limit_);
        break;
    }
    check();
  }

  // In the end all that is there can be popped, each block once.
  void drain() {
    for (auto& [name, block] : blocks_) {
      for (; block.holds > 0; --block.holds)
        space_.release(space_digest(name.first), name.second);
    }
    while (!popped_.empty())
      settle_popped();
    check();
    while (pop()) {
    }
    for (const auto& [name, block] : blocks_)
      ASSERT_TRUE(block.bytes == 0 || block.popped);
    while (!popped_.empty())
      settle_popped();
  }

 private:
  using Name = std::pair<std::uint64_t, std::uint32_t>;
  struct Known {
    std::uint32_t bytes = 0;
    std::uint32_t holds = 0;
    bool popped = false;  // And not in the order.
  };

  // New bytes bring a block back into the order.
  void put(Name name, std::uint32_t bytes) {
    blocks_[name].bytes = bytes;
    blocks_[name].popped = false;
  }
  std::uint64_t used() const {
    std::uint64_t used = 0;
    for (const auto& [name, block] : blocks_)
      used += block.bytes;
    return used;
  }
  void fill(Name name, std::uint32_t bytes) {
    const bool room = used() + bytes <= limit_;
    ASSERT_EQ(space_.try_reserve(bytes), room);
    if (!room) return;
    space_.fill(space_digest(name.first), name.second, bytes);
    put(name, blocks_[name].bytes + bytes);
  }
  bool pop() {
    const std::optional<CacheSpace::Block> victim = space_.pop_victim();
    if (!victim) {
      for (const auto& [name, block] : blocks_)
        EXPECT_TRUE(block.bytes == 0 || block.holds > 0 || block.popped) << "there was one";
      return false;
    }
    for (auto& [name, block] : blocks_) {
      if (space_digest(name.first) != victim->digest || name.second != victim->block) continue;
      EXPECT_EQ(block.bytes, victim->bytes);
      EXPECT_GT(block.bytes, 0u);
      EXPECT_EQ(block.holds, 0u);
      EXPECT_FALSE(block.popped);
      block.popped = true;
      popped_.emplace_back(name, *victim);
      return true;
    }
    ADD_FAILURE() << "a victim that nobody knows";
    return false;
  }
  // Keeps or removes a victim of before.
  void settle_popped() {
    if (popped_.empty()) return;
    const auto [name, victim] = popped_.back();
    popped_.pop_back();
    if (random_() % 2 == 0) {
      space_.keep(victim);
      blocks_[name].popped = false;
    } else {
      space_.remove(victim.digest, victim.block);
      blocks_[name].bytes = 0;
    }
  }
  void check() {
    std::uint64_t held = 0;
    std::set<std::uint64_t> objects;
    for (const auto& [name, block] : blocks_) {
      if (block.holds > 0 && !block.popped) held += block.bytes;
      if (block.holds > 0 || block.bytes > 0) objects.insert(name.first);
    }
    ASSERT_EQ(space_.used_bytes(), used());
    ASSERT_EQ(space_.held_bytes(), held);
    ASSERT_EQ(space_.digests().size(), objects.size());
  }

  std::mt19937_64 random_;
  std::uint64_t limit_ = 10'000;
  CacheSpace space_{limit_};
  std::map<Name, Known> blocks_;
  std::vector<std::pair<Name, CacheSpace::Block>> popped_;
};

TEST(CacheSpace, AgreesWithAMap) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SpaceModel model(seed);
    for (int step = 0; step < 2000; ++step) {
      model.step();
      if (::testing::Test::HasFailure()) {
        FAIL() << "step " << step;
      }
    }
    model.drain();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace millrace
