#include "frontends/nfs4/nfs_read_budget.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/manual_executor.h"

namespace millrace {
namespace {

class NfsReadBudgetTest : public ::testing::Test {
 protected:
  void reserve(std::uint64_t connection, std::uint64_t bytes) {
    const std::size_t index = shares_.size();
    shares_.emplace_back();
    budget_.reserve(
        NfsConnectionId(connection), bytes, executor_,
        [this, index](NfsReadBudget::Share share) { shares_[index] = std::move(share); });
  }
  void run() { executor_.run_all(); }
  bool has(std::size_t index) const { return shares_[index] != nullptr; }

  ManualExecutor executor_;
  NfsReadBudget budget_{100};
  std::vector<NfsReadBudget::Share> shares_;
};

TEST_F(NfsReadBudgetTest, WhatFitsIsGivenAtOnce) {
  reserve(1, 50);
  reserve(2, 50);
  EXPECT_TRUE(has(0) && has(1));
  EXPECT_EQ(budget_.bytes_in_use(), 100U);
  shares_.clear();
  EXPECT_EQ(budget_.bytes_in_use(), 0U);
}

TEST_F(NfsReadBudgetTest, WhoComesLaterWaitsForRoom) {
  reserve(1, 50);
  reserve(2, 50);
  reserve(3, 10);
  reserve(4, 10);
  EXPECT_EQ(budget_.waiting(), 2U);
  shares_[0].reset();
  run();
  EXPECT_TRUE(has(2) && has(3));
  EXPECT_EQ(budget_.bytes_in_use(), 70U);
}

// A client that takes nothing has half of it, and the others go on.
TEST_F(NfsReadBudgetTest, OneConnectionGetsHalfAndHoldsNobodyUp) {
  reserve(1, 50);
  reserve(1, 10);
  EXPECT_FALSE(has(1));
  reserve(2, 30);
  run();
  EXPECT_TRUE(has(2));
  EXPECT_FALSE(has(1));
  shares_[0].reset();
  run();
  EXPECT_TRUE(has(1));
}

// However many take nothing, each leaves half of what it found.
TEST_F(NfsReadBudgetTest, EachConnectionLeavesHalfOfWhatItFinds) {
  for (std::uint64_t connection = 1; connection <= 3; ++connection) {
    for (int i = 0; i < 10; ++i)
      reserve(connection, 5);
    run();
  }
  EXPECT_EQ(budget_.bytes_in_use(), 50U + 25U + 10U);
  reserve(4, 15);
  run();
  EXPECT_TRUE(has(shares_.size() - 1));
}

TEST_F(NfsReadBudgetTest, NobodyOvertakesWhoeverWaitsForMoreRoom) {
  reserve(1, 50);
  reserve(2, 40);
  reserve(3, 20);
  reserve(4, 5);
  run();
  EXPECT_FALSE(has(2));
  EXPECT_FALSE(has(3));
  shares_[1].reset();
  run();
  EXPECT_TRUE(has(2) && has(3));
}

}  // namespace
}  // namespace millrace
