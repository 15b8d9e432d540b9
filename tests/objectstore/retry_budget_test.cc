#include "objectstore/retry_budget.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {

TEST(RetryBudget, SpendsAndRefillsWithinItsBounds) {
  RetryBudget budget(12, 5);
  EXPECT_TRUE(budget.try_spend());
  EXPECT_TRUE(budget.try_spend());
  EXPECT_FALSE(budget.try_spend()) << "2 tokens are not 5";
  EXPECT_EQ(budget.tokens(), 2);
  budget.on_success(true);
  EXPECT_EQ(budget.tokens(), 7);
  budget.on_success(false);
  EXPECT_EQ(budget.tokens(), 8);
  for (int i = 0; i < 10; ++i)
    budget.on_success(true);
  EXPECT_EQ(budget.tokens(), 12);
}

TEST(RetryBudget, ThreadsNeverOverdraw) {
  RetryBudget budget(1000, 5);
  std::atomic<int> granted = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 1000; ++n)
          granted += budget.try_spend() ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(granted, 200);
  EXPECT_EQ(budget.tokens(), 0);
}

}  // namespace millrace
