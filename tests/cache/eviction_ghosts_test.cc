#include "cache/eviction_ghosts.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(GhostQueue, AGhostIsTakenOnce) {
  GhostQueue ghosts;
  EXPECT_FALSE(ghosts.take({1, 1}, 10));
  ghosts.add({1, 1}, 10);
  EXPECT_FALSE(ghosts.take({1, 2}, 10));
  EXPECT_TRUE(ghosts.take({1, 1}, 10));
  EXPECT_FALSE(ghosts.take({1, 1}, 10));
}

TEST(GhostQueue, OnlyTheLastOnesCount) {
  GhostQueue ghosts;
  for (std::uint32_t block = 0; block < 20; ++block)
    ghosts.add({1, block}, 10);
  EXPECT_FALSE(ghosts.take({1, 9}, 10));
  EXPECT_TRUE(ghosts.take({1, 10}, 10));
  EXPECT_FALSE(ghosts.take({1, 19}, 0));
}

TEST(GhostQueue, OneThatLeavesAgainIsYoungAgain) {
  GhostQueue ghosts;
  ghosts.add({1, 0}, 4);
  ghosts.add({1, 1}, 4);
  ghosts.add({1, 0}, 4);
  for (std::uint32_t block = 2; block < 5; ++block)
    ghosts.add({1, block}, 4);
  EXPECT_TRUE(ghosts.take({1, 0}, 4));
}

TEST(GhostQueue, GrowingForgetsNothing) {
  GhostQueue ghosts;
  constexpr std::uint32_t kCount = 100'000;
  for (std::uint32_t block = 0; block < kCount; ++block)
    ghosts.add({7, block}, block + 1);
  std::uint32_t found = 0;
  for (std::uint32_t block = 0; block < kCount; ++block)
    found += ghosts.take({7, block}, kCount) ? 1 : 0;
  // Now and then a bucket overflows.
  EXPECT_GE(found, kCount * 0.95);
  EXPECT_LE(ghosts.memory_bytes(), kCount * std::size_t{24});
}

TEST(GhostQueue, StrangersAreHardlyEverMistaken) {
  GhostQueue ghosts;
  constexpr std::uint32_t kCount = 100'000;
  for (std::uint32_t block = 0; block < kCount; ++block)
    ghosts.add({7, block}, kCount);
  std::uint32_t mistaken = 0;
  for (std::uint32_t block = 0; block < kCount; ++block)
    mistaken += ghosts.take({8, block}, kCount) ? 1 : 0;
  EXPECT_LE(mistaken, 20U);
}

}  // namespace
}  // namespace millrace
