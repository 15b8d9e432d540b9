#include "loader/keyed_permutation.h"

#include <cmath>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "loader/order_key.h"

namespace millrace {
namespace {

bool is_permutation_of_all(const KeyedPermutation& permutation) {
  std::vector<bool> seen(permutation.size());
  for (std::uint64_t n = 0; n < permutation.size(); ++n) {
    const std::uint64_t value = permutation.at(n);
    if (value >= permutation.size() || seen[value]) return false;
    seen[value] = true;
  }
  return true;
}

TEST(KeyedPermutationTest, TakesEachValueOnceForEverySmallSizeAndSomeLargeOnes) {
  for (std::uint64_t size = 1; size <= 600; ++size) {
    for (std::uint64_t key = 0; key < 4; ++key) {
      ASSERT_TRUE(is_permutation_of_all(KeyedPermutation(key, size))) << size << " by key " << key;
    }
  }
  for (const std::uint64_t size : {65'535ULL, 65'536ULL, 65'537ULL, 1'000'003ULL}) {
    ASSERT_TRUE(is_permutation_of_all(KeyedPermutation(size, size))) << size;
  }
}

// The values below are the algorithm: a state that was saved by an earlier release depends on them.
TEST(KeyedPermutationTest, IsTheSameInEveryRelease) {
  std::vector<std::uint64_t> values;
  for (std::uint64_t n = 0; n < 8; ++n)
    values.push_back(KeyedPermutation(17, 1000).at(n));
  EXPECT_EQ(values, (std::vector<std::uint64_t>{587, 198, 531, 116, 211, 427, 581, 392}));
  EXPECT_EQ(KeyedPermutation(17, 10'000'000'000).at(9'999'999'999), 7'027'066'916U);
  EXPECT_EQ(order_key({.content_digest = {}, .seed = 17}, 3, "order"), 12'770'712'428'611'539'155U);
}

// Each value comes up at each position about equally often, and so does each pair at the first two.
TEST(KeyedPermutationTest, ChoosesWithoutPreference) {
  constexpr std::uint64_t kKeys = 8'000;
  for (const std::uint64_t size : {2, 3, 5, 8, 13, 16}) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, double> at_position;
    std::map<std::pair<std::uint64_t, std::uint64_t>, double> first_two;
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      const KeyedPermutation permutation(subkey(99, key), size);
      for (std::uint64_t n = 0; n < size; ++n)
        at_position[{n, permutation.at(n)}] += 1;
      first_two[{permutation.at(0), permutation.at(1)}] += 1;
    }
    ASSERT_EQ(at_position.size(), size * size);
    ASSERT_EQ(first_two.size(), size * (size - 1));
    // Six standard deviations: among some thousand counts none goes beyond it by chance.
    const auto near = [](double count, double expected) {
      return std::abs(count - expected) < 6 * std::sqrt(expected);
    };
    for (const auto& [what, count] : at_position) {
      EXPECT_TRUE(near(count, static_cast<double>(kKeys) / static_cast<double>(size)))
          << what.second << " at " << what.first << " of " << size << ": " << count;
    }
    for (const auto& [pair, count] : first_two) {
      EXPECT_TRUE(near(count, static_cast<double>(kKeys) / static_cast<double>(size * (size - 1))))
          << pair.first << ", " << pair.second << " of " << size << ": " << count;
    }
  }
}

TEST(KeyedPermutationTest, NeighboursLandFarApart) {
  constexpr std::uint64_t kSize = 1'000'000;
  const KeyedPermutation permutation(5, kSize);
  double sum = 0;
  constexpr std::uint64_t kPairs = 20'000;
  for (std::uint64_t n = 0; n < kPairs; ++n) {
    const auto a = static_cast<double>(permutation.at(n));
    const auto b = static_cast<double>(permutation.at(n + 1));
    sum += std::abs(a - b);
  }
  // Two random values are a third of the range apart, on average.
  EXPECT_NEAR(sum / kPairs, kSize / 3.0, kSize * 0.01);
}

TEST(OrderKeyTest, EveryPartCounts) {
  const OrderSeed seed{.content_digest = {std::byte{1}}, .seed = 17};
  const std::uint64_t key = order_key(seed, 0, "order");
  EXPECT_EQ(key, order_key(seed, 0, "order"));
  EXPECT_NE(key, order_key(seed, 1, "order"));
  EXPECT_NE(key, order_key(seed, 0, "split"));
  EXPECT_NE(key, order_key({.content_digest = {std::byte{1}}, .seed = 18}, 0, "order"));
  EXPECT_NE(key, order_key({.content_digest = {std::byte{2}}, .seed = 17}, 0, "order"));
  EXPECT_NE(sample_seed(key, 0), sample_seed(key, 1));
}

}  // namespace
}  // namespace millrace
