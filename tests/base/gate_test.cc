#include "base/gate.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Gate, CountsWhoIsInside) {
  Gate gate;
  auto a = gate.enter();
  auto b = gate.enter();
  ASSERT_TRUE(a && b);
  EXPECT_EQ(gate.inside(), 2U);
  Gate::Pass moved = std::move(*a);
  a.reset();
  EXPECT_EQ(gate.inside(), 2U) << "a pass that was moved from is nobody";
  moved = std::move(*b);
  EXPECT_EQ(gate.inside(), 1U) << "assigning over a pass leaves with it";
}

TEST(Gate, RefusesOnceClosed) {
  Gate gate;
  gate.close();
  gate.close();
  EXPECT_FALSE(gate.enter().has_value());
}

TEST(Gate, CloseWaitsForThoseInside) {
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> working = 0;
    std::vector<std::thread> threads;
    {
      Gate gate;
      for (int i = 0; i < 3; ++i) {
        auto pass = gate.enter();
        ASSERT_TRUE(pass);
        ++working;
        threads.emplace_back([&working, held = std::move(*pass)] { --working; });
      }
      gate.close();
      EXPECT_EQ(working, 0);
    }
    for (auto& thread : threads)
      thread.join();
  }
}

}  // namespace
}  // namespace millrace
