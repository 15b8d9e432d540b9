#include "cache/eviction.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace millrace {
namespace {

constexpr std::uint32_t kSimulatedBlockBytes = 4 * kMiB;

// A cache without bytes: what a read finds, and what goes for it.
class SimulatedCache {
 public:
  explicit SimulatedCache(std::size_t blocks) : blocks_(blocks) {}

  // Whether it was there.
  bool read(BlockId block) {
    if (eviction.touch(block)) return true;
    while (eviction.entries() >= blocks_)
      eviction.pop_victim();
    eviction.insert(block, kSimulatedBlockBytes);
    return false;
  }
  // How many blocks of [first, end) of an object were there.
  std::size_t read_all(std::uint32_t object, std::uint32_t first, std::uint32_t end) {
    std::size_t hits = 0;
    for (std::uint32_t block = first; block < end; ++block)
      hits += read({object, block}) ? 1 : 0;
    return hits;
  }

  Eviction eviction;

 private:
  std::size_t blocks_;
};

TEST(Eviction, CountsBytesAndEntries) {
  Eviction eviction;
  EXPECT_EQ(eviction.pop_victim(), std::nullopt);
  eviction.insert({1, 0}, 100);
  eviction.insert({1, 1}, 50);
  EXPECT_EQ(eviction.entries(), 2U);
  EXPECT_EQ(eviction.bytes(), 150U);
  eviction.insert({1, 0}, 300);
  EXPECT_EQ(eviction.entries(), 2U) << "a block that grows is still one block";
  EXPECT_EQ(eviction.bytes(), 350U);
  EXPECT_TRUE(eviction.erase({1, 0}));
  EXPECT_FALSE(eviction.erase({1, 0}));
  EXPECT_FALSE(eviction.touch({1, 0}));
  EXPECT_FALSE(eviction.contains({1, 0}));
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 1}));
  EXPECT_EQ(eviction.bytes(), 0U);
}

TEST(Eviction, WhatWasNeverUsedAgainGoesInTheOrderItCame) {
  Eviction eviction;
  for (std::uint32_t block = 0; block < 10; ++block)
    eviction.insert({1, block}, block == 0 ? 1000 : 1);  // The first one alone fills small.
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 0}));
  for (std::uint32_t block = 1; block < 10; ++block)
    EXPECT_TRUE(eviction.pop_victim());
  EXPECT_EQ(eviction.pop_victim(), std::nullopt);
}

TEST(Eviction, HeldBlocksAreNoVictims) {
  Eviction eviction;
  eviction.insert({1, 0}, 10);
  eviction.insert({1, 1}, 20);
  EXPECT_TRUE(eviction.hold({1, 0}));
  EXPECT_TRUE(eviction.hold({1, 0}));
  EXPECT_FALSE(eviction.hold({2, 0}));
  EXPECT_EQ(eviction.held_bytes(), 10U);
  eviction.insert({1, 0}, 15);
  EXPECT_EQ(eviction.held_bytes(), 15U);
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 1}));
  EXPECT_EQ(eviction.pop_victim(), std::nullopt);
  EXPECT_TRUE(eviction.release({1, 0}));
  EXPECT_EQ(eviction.pop_victim(), std::nullopt) << "one hold is left";
  EXPECT_TRUE(eviction.release({1, 0}));
  EXPECT_FALSE(eviction.release({1, 0})) << "nobody holds it";
  EXPECT_EQ(eviction.held_bytes(), 0U);
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 0}));
}

TEST(Eviction, AHeldBlockCanBeErased) {
  Eviction eviction;
  eviction.insert({1, 0}, 10);
  eviction.hold({1, 0});
  EXPECT_TRUE(eviction.erase({1, 0}));
  EXPECT_EQ(eviction.held_bytes(), 0U);
  eviction.insert({1, 0}, 10);
  EXPECT_FALSE(eviction.release({1, 0})) << "the hold was on what is gone";
  EXPECT_EQ(eviction.pop_victim(), (BlockId{1, 0}));
}

TEST(Eviction, AScanPushesOutNothingThatIsUsed) {
  SimulatedCache cache(1000);
  // Twice, while other things come and go: now the first 500 blocks are known to be used.
  for (std::uint32_t round = 0; round < 4; ++round) {
    cache.read_all(1, 0, 500);
    cache.read_all(2 + round, 0, 200);
  }
  std::size_t hits = 0;
  for (std::uint32_t round = 0; round < 20; ++round) {
    cache.read_all(100, round * 500, (round + 1) * 500);  // 10 caches full in all.
    hits += cache.read_all(1, 0, 500);
  }
  EXPECT_EQ(hits, 20 * 500U);
}

TEST(Eviction, AScanOfLargeBlocksPushesOutNoSmallOnes) {
  // The queues count bytes: 1,000 small objects that are used are 1,000 KiB, as one block of a
  // scan.
  Eviction eviction;
  const std::uint64_t capacity_bytes = 20 * kMiB;
  const auto read = [&](BlockId block, std::uint32_t bytes) {
    if (eviction.touch(block)) return true;
    while (eviction.bytes() + bytes > capacity_bytes)
      eviction.pop_victim();
    eviction.insert(block, bytes);
    return false;
  };
  std::size_t hits = 0;
  for (std::uint32_t round = 0; round < 50; ++round) {
    for (std::uint32_t object = 0; object < 1000; ++object)
      hits += read({object, 0}, kKiB) ? 1 : 0;
    for (std::uint32_t block = 0; block < 10; ++block)
      read({5000, round * 10 + block}, kMiB);
  }
  EXPECT_EQ(hits, 49 * 1000U);
}

TEST(Eviction, UsesInQuickSuccessionCountAsOne) {
  SimulatedCache cache(1000);
  cache.read_all(1, 0, 1000);
  // A scan whose reader comes to each block 32 times, as one that reads 128 KiB at a time does.
  for (std::uint32_t block = 0; block < 3000; ++block) {
    for (int read = 0; read < 32; ++read)
      cache.read({2, block});
  }
  EXPECT_GE(cache.read_all(1, 0, 1000), 890U) << "what was there first is in main";
}

TEST(Eviction, ABlockThatReturnsSoonIsKept) {
  SimulatedCache cache(1000);
  cache.read_all(1, 0, 1000);
  cache.read({2, 0});
  cache.read_all(3, 0, 150);  // 2/0 fails its trial ...
  ASSERT_FALSE(cache.eviction.contains({2, 0}));
  cache.read({2, 0});  // ... and returns, while it is remembered.
  cache.read_all(4, 0, 500);
  EXPECT_TRUE(cache.eviction.contains({2, 0}));
}

TEST(Eviction, ABlockThatReturnsLateIsOnTrialAgain) {
  SimulatedCache cache(1000);
  cache.read_all(1, 0, 1000);
  cache.read({2, 0});
  cache.read_all(3, 0, 1000);
  ASSERT_FALSE(cache.eviction.contains({2, 0}));
  cache.read({2, 0});
  cache.read_all(4, 0, 500);
  EXPECT_FALSE(cache.eviction.contains({2, 0}));
}

TEST(Eviction, EpochsOverMoreThanTheCacheFindTheSamePartEachTime) {
  SimulatedCache cache(1000);
  cache.read_all(1, 0, 4000);
  for (int epoch = 0; epoch < 5; ++epoch)
    EXPECT_GE(cache.read_all(1, 0, 4000), 890U) << "LRU would find none of them";
}

TEST(Eviction, AJobThatEndedLeavesItsPartToTheNext) {
  SimulatedCache cache(1000);
  for (int epoch = 0; epoch < 5; ++epoch)
    cache.read_all(1, 0, 2000);
  for (int epoch = 0; epoch < 8; ++epoch)
    cache.read_all(2, 0, 2000);
  EXPECT_GE(cache.read_all(2, 0, 2000), 800U);
}

// The cost per block depends on when tables have last doubled, and that repeats with every power of
// two. Here are the worst places, just after the index (3/4 full) or a heap did so, and 125,000,
// which is like two million.
class EvictionMemory : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(EvictionMemory, AnUnplannedBlockCostsAtMost64Bytes) {
  const std::uint32_t blocks = GetParam();
  Eviction eviction;
  for (std::uint32_t number = 0; number < blocks; ++number)
    eviction.insert({number, 0}, kKiB);
  for (std::uint32_t number = 0; number < blocks / 4; ++number) {  // More ghosts than it keeps.
    eviction.pop_victim();
    eviction.insert({blocks + number, 0}, kKiB);
  }
  EXPECT_EQ(eviction.entries(), blocks);
  EXPECT_LE(eviction.memory_bytes(), blocks * std::size_t{64});
}

TEST_P(EvictionMemory, APlannedBlockCostsAtMost64BytesAndItsPlan24) {
  const std::uint32_t blocks = GetParam();
  std::vector<PlannedBlock> reads;
  for (std::uint32_t number = 0; number < blocks; ++number)
    reads.push_back({.block = {number, 0}, .bytes = kKiB});
  Eviction eviction;
  ASSERT_TRUE(eviction.announce(ReadPlanStretch(std::move(reads))));
  for (std::uint32_t number = 0; number < blocks; ++number)
    eviction.insert({number, 0}, kKiB);
  EXPECT_EQ(eviction.planned_bytes(), blocks * kKiB);
  EXPECT_LE(eviction.memory_bytes(), blocks * std::size_t{64});
  EXPECT_LE(eviction.plans().memory_bytes(), blocks * std::size_t{24});
}

INSTANTIATE_TEST_SUITE_P(Sizes, EvictionMemory,
                         ::testing::Values(65'537, 98'305, 125'000, 131'073, 196'609));

}  // namespace
}  // namespace millrace
