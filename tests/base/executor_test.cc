#include "base/executor.h"

#include <gtest/gtest.h>

#include "base/completion.h"
#include "base/manual_executor.h"

namespace millrace {
namespace {

TEST(InlineExecutor, RunsAtOnceOnTheCallingThread) {
  int runs = 0;
  EXPECT_TRUE(inline_executor().submit([&] { ++runs; }).ok());
  EXPECT_EQ(runs, 1);
  inline_executor().resume([&] { ++runs; });
  EXPECT_EQ(runs, 2);
}

std::vector<int> order_with_seed(std::uint64_t seed) {
  ManualExecutor executor(seed);
  std::vector<int> order;
  for (int i = 0; i < 32; ++i)
    executor.resume([&order, i] { order.push_back(i); });
  EXPECT_EQ(executor.run_all(), 32U);
  return order;
}

TEST(ManualExecutor, SeedZeroIsFirstInFirstOut) {
  const auto order = order_with_seed(0);
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(order[i], i);
}

TEST(ManualExecutor, TheSameSeedGivesTheSameOrder) {
  EXPECT_EQ(order_with_seed(7), order_with_seed(7));
  EXPECT_NE(order_with_seed(7), order_with_seed(8));
  EXPECT_NE(order_with_seed(7), order_with_seed(0));
}

TEST(ManualExecutor, RunsNothingUntilTold) {
  ManualExecutor executor;
  int runs = 0;
  EXPECT_FALSE(executor.run_one());
  executor.resume([&] {
    ++runs;
    executor.resume([&] { ++runs; });
  });
  EXPECT_EQ(executor.pending(), 1U);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(executor.run_all(), 2U);
  EXPECT_EQ(runs, 2);
}

TEST(ManualExecutor, BoundsSubmitButNotResume) {
  ManualExecutor executor(0, 1);
  EXPECT_TRUE(executor.submit([] {}).ok());
  executor.resume([] {});
  EXPECT_EQ(executor.submit([] { FAIL() << "a refused task ran"; }),
            StatusCode::kResourceExhausted);
  EXPECT_TRUE(executor.run_one());
  EXPECT_TRUE(executor.submit([] {}).ok()) << "the place is free again";
  executor.run_all();
}

TEST(ManualExecutor, TasksThatNeverRanMayAnswerThroughItWhenDestroyed) {
  bool answered = false;
  {
    ManualExecutor executor;
    Completion<int> completion(executor, [&](Result<int>) { answered = true; });
    executor.resume([owned = std::move(completion)] {});
  }
  EXPECT_FALSE(answered) << "what is left with the executor is dropped";
}

}  // namespace
}  // namespace millrace
