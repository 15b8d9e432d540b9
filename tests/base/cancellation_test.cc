#include "base/cancellation.h"

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Cancellation, RunsCallbacksOnceInOrder) {
  Cancellation cancel;
  std::vector<int> order;
  cancel.subscribe([&] { order.push_back(1); });
  cancel.subscribe([&] { order.push_back(2); });
  EXPECT_FALSE(cancel.requested());
  cancel.request();
  cancel.request();
  EXPECT_TRUE(cancel.requested());
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST(Cancellation, LateSubscribersRunAtOnceWithIdZero) {
  Cancellation cancel;
  cancel.request();
  bool ran = false;
  EXPECT_EQ(cancel.subscribe([&] { ran = true; }), 0U);
  EXPECT_TRUE(ran);
  cancel.unsubscribe(0);
}

TEST(Cancellation, UnsubscribedCallbacksNeitherRunNorLive) {
  Cancellation cancel;
  const auto resource = std::make_shared<int>();
  const auto id = cancel.subscribe([resource] { FAIL(); });
  EXPECT_NE(id, 0U);
  cancel.unsubscribe(id);
  EXPECT_EQ(resource.use_count(), 1);
  cancel.request();
  cancel.unsubscribe(id);
}

TEST(Cancellation, ACallbackMayUnsubscribeAnother) {
  Cancellation cancel;
  Cancellation::CallbackId second = 0;
  cancel.subscribe([&] { cancel.unsubscribe(second); });
  second = cancel.subscribe([] { FAIL() << "it was unsubscribed before its turn"; });
  cancel.request();
}

TEST(Cancellation, UnsubscribeWaitsForARunningCallback) {
  Cancellation cancel;
  std::latch inside(1);
  std::latch go_on(1);
  std::atomic<bool> finished = false;
  const auto id = cancel.subscribe([&] {
    inside.count_down();
    go_on.wait();
    finished = true;
  });
  std::thread canceller([&] { cancel.request(); });
  inside.wait();
  std::thread releaser([&] { go_on.count_down(); });
  cancel.unsubscribe(id);
  EXPECT_TRUE(finished);
  canceller.join();
  releaser.join();
}

// Subscribers whose state lives on their stack, against a concurrent request().
TEST(Cancellation, SubscribersRaceWithTheRequest) {
  for (int round = 0; round < 200; ++round) {
    Cancellation cancel;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        int calls = 0;
        const auto id = cancel.subscribe([&calls] { ++calls; });
        cancel.unsubscribe(id);
        EXPECT_LE(calls, 1);
      });
    }
    cancel.request();
    for (auto& thread : threads)
      thread.join();
  }
}

}  // namespace
}  // namespace millrace
