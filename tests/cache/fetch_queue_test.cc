#include "cache/fetch_queue.h"

#include <atomic>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/manual_executor.h"
#include "base/thread_pool.h"
#include "tests/cache/held_back_store.h"

namespace millrace {
namespace {

using Fetched = FetchQueue::Fetched;

class FetchQueueTest : public ::testing::Test {
 protected:
  void TearDown() override {
    answers.clear();  // The queue waits for those who hold bytes of it, and answers the others.
    queue.reset();
  }
  void make(FetchQueueOptions options) {
    queue = std::make_unique<FetchQueue>(options, inline_executor(), clock, metrics);
  }
  // The answer of a fetch is kept under its name, with its share of the limit, until it is let go.
  Result<FetchQueue::Ticket> submit(Urgency urgency, const std::string& name, std::uint64_t bytes,
                                    std::uint32_t attempt = 0) {
    return queue->submit(
        urgency, store,
        GetRequest{.key = ObjectKey(name), .range = ByteRange{0, bytes}, .identity = {}}, attempt,
        [this, name](Result<Fetched> result) {
          EXPECT_FALSE(answers.contains(name)) << name << " is answered twice";
          answers.emplace(name, std::move(result));
        });
  }
  FetchQueue::Ticket demand(const std::string& name, std::uint64_t bytes) {
    return *submit(Urgency::kDemanded, name, bytes);
  }
  FetchQueue::Ticket speculate(const std::string& name, std::uint64_t bytes) {
    return *submit(Urgency::kSpeculative, name, bytes);
  }
  StatusCode code(const std::string& name) {
    const Result<Fetched>& answer = answers.at(name);
    return answer ? StatusCode::kOk : answer.error().code();
  }
  std::int64_t bytes_in_flight() {
    return metrics.gauge(MetricId::kCacheFetchBytesInFlight).value();
  }
  std::int64_t requests_in_flight() {
    return metrics.gauge(MetricId::kCacheFetchesInFlight).value();
  }
  void expect_idle() {
    EXPECT_EQ(bytes_in_flight(), 0);
    EXPECT_EQ(requests_in_flight(), 0);
  }

  ManualClock clock;
  Metrics metrics;
  const std::shared_ptr<HeldBackStore> store = std::make_shared<HeldBackStore>();
  std::unique_ptr<FetchQueue> queue;
  std::map<std::string, Result<Fetched>> answers;

  // Lets everything end that is under way.
  void answer_all(ManualExecutor& executor, std::vector<Fetched>& held,
                  const std::function<bool()>& done) {
    for (int i = 0; !done() && i < 100'000; ++i) {
      executor.run_all();
      held.clear();
      if (store->waiting() > 0) {
        store->answer(0);
      } else {
        clock.advance_to_next_timer();
      }
    }
    executor.run_all();
    held.clear();
  }
};

TEST_F(FetchQueueTest, BytesCountUntilTheyAreLetGo) {
  make({.bytes_in_flight_max = 100});
  demand("a", 60);
  demand("b", 60);
  EXPECT_EQ(store->waiting(), 1u);
  store->answer(0);
  EXPECT_EQ(answers.at("a")->data().size(), 60u);
  EXPECT_EQ(requests_in_flight(), 0);
  EXPECT_EQ(bytes_in_flight(), 60);
  EXPECT_EQ(store->waiting(), 0u) << "its bytes are still in memory";
  answers.clear();
  EXPECT_EQ(store->key(0), "b");
  store->answer(0);
  answers.clear();
  expect_idle();
}

TEST_F(FetchQueueTest, RequestsAreBounded) {
  make({.requests_in_flight_max = 2});
  for (const char* name : {"a", "b", "c"})
    demand(name, 1);
  EXPECT_EQ(store->waiting(), 2u);
  store->answer(1);
  EXPECT_EQ(store->waiting(), 2u);
  EXPECT_EQ(store->key(1), "c");
}

TEST_F(FetchQueueTest, AFetchAboveTheLimitGoesAlone) {
  make({.bytes_in_flight_max = 100});
  demand("small", 10);
  demand("huge", 1000);
  demand("next", 10);
  EXPECT_EQ(store->waiting(), 1u);
  store->answer(0);
  answers.clear();
  ASSERT_EQ(store->waiting(), 1u);
  EXPECT_EQ(store->key(0), "huge");
  store->answer(0);
  answers.clear();
  EXPECT_EQ(store->key(0), "next");
}

TEST_F(FetchQueueTest, DemandedFetchesGoFirst) {
  make({.requests_in_flight_max = 1});
  demand("running", 1);
  speculate("s1", 1);
  speculate("s2", 1);
  demand("d1", 1);
  demand("d2", 1);
  std::string order;
  while (store->waiting() > 0) {
    order += store->key(0) + " ";
    store->answer(0);
    answers.clear();
  }
  EXPECT_EQ(order, "running d1 d2 s1 s2 ");
}

TEST_F(FetchQueueTest, TheLastEighthIsForDemandedOnes) {
  make({.bytes_in_flight_max = 1000, .requests_in_flight_max = 16});
  for (int i = 0; i < 16; ++i)
    speculate("s" + std::to_string(i), 10);
  EXPECT_EQ(store->waiting(), 14u);
  demand("d1", 10);
  demand("d2", 10);
  EXPECT_EQ(store->waiting(), 16u);
  while (store->waiting() > 0) {
    store->answer(0);
    answers.clear();
  }
  speculate("large1", 800);
  speculate("large2", 100);
  EXPECT_EQ(store->waiting(), 1u) << "875 bytes are for speculation";
  demand("d3", 200);
  EXPECT_EQ(store->waiting(), 2u);
}

TEST_F(FetchQueueTest, APromotedFetchOvertakes) {
  make({.requests_in_flight_max = 1});
  demand("running", 1);
  speculate("s1", 1);
  const FetchQueue::Ticket wanted = speculate("s2", 1);
  queue->promote(wanted);
  queue->promote(wanted);
  demand("d1", 1);
  store->answer(0);
  EXPECT_EQ(store->key(0), "s2");
  store->answer(0);
  answers.clear();
  EXPECT_EQ(store->key(0), "d1");
  queue->promote(wanted);
  queue->promote(FetchQueue::Ticket());
}

TEST_F(FetchQueueTest, APromotedFetchNoLongerCountsAsQueuedSpeculation) {
  make({.requests_in_flight_max = 1, .speculative_bytes_queued_max = 100});
  demand("running", 1);
  const FetchQueue::Ticket wanted = speculate("s1", 100);
  EXPECT_FALSE(submit(Urgency::kSpeculative, "s2", 1));
  queue->promote(wanted);
  EXPECT_TRUE(submit(Urgency::kSpeculative, "s3", 100));
}

TEST_F(FetchQueueTest, TooMuchIsRefusedAndNotAnswered) {
  make(
      {.requests_in_flight_max = 1, .speculative_bytes_queued_max = 100, .demanded_queued_max = 2});
  demand("running", 1);
  EXPECT_TRUE(submit(Urgency::kSpeculative, "s1", 60));
  EXPECT_EQ(submit(Urgency::kSpeculative, "s2", 60).error().code(), StatusCode::kResourceExhausted);
  demand("d1", 1);
  demand("d2", 1);
  EXPECT_EQ(submit(Urgency::kDemanded, "d3", 1).error().code(), StatusCode::kResourceExhausted);
  while (store->waiting() > 0) {
    store->answer(0);
    EXPECT_FALSE(answers.contains("s2"));
    EXPECT_FALSE(answers.contains("d3"));
    answers.clear();
  }
  EXPECT_EQ(store->calls(), 4u);
  expect_idle();
}

TEST_F(FetchQueueTest, AShortOrLongBodyIsCorruption) {
  make({});
  for (const std::size_t bytes : {0, 9, 11}) {
    demand("a", 10);
    store->answer(0, bytes);
    EXPECT_EQ(code("a"), StatusCode::kCorruption);
    EXPECT_NE(answers.at("a").error().message().find("held-back"), std::string::npos);
    answers.clear();
    expect_idle();
  }
}

TEST_F(FetchQueueTest, AFailureReachesItsAsker) {
  make({});
  demand("a", 10);
  store->fail(0, StatusCode::kPreconditionFailed);
  EXPECT_EQ(code("a"), StatusCode::kPreconditionFailed);
  expect_idle();
}

TEST_F(FetchQueueTest, TheStoreLearnsDeadlineAndAttempt) {
  make({.timeout = std::chrono::seconds(7)});
  ASSERT_TRUE(submit(Urgency::kDemanded, "a", 10, 3));
  EXPECT_EQ(store->context(0).deadline(), clock.now() + std::chrono::seconds(7));
  EXPECT_EQ(store->context(0).attempt(), 3u);
}

TEST_F(FetchQueueTest, WaitsForMemory) {
  make({.timeout = std::chrono::seconds(1)});
  demand("a", 10);
  const TimePoint deadline = store->context(0).deadline();
  for (int i = 0; i < 5; ++i) {
    store->fail(0, StatusCode::kResourceExhausted);
    EXPECT_EQ(store->waiting(), 0u);
    EXPECT_EQ(bytes_in_flight(), 10) << "it keeps its place";
    ASSERT_TRUE(clock.advance_to_next_timer());
    ASSERT_EQ(store->waiting(), 1u);
    EXPECT_EQ(store->context(0).deadline(), deadline) << "all attempts share one";
  }
  store->answer(0);
  EXPECT_EQ(code("a"), StatusCode::kOk);
  answers.clear();
  EXPECT_EQ(clock.armed_timers(), 0u);
  expect_idle();
}

TEST_F(FetchQueueTest, WaitsForMemoryUntilTheDeadlineOnly) {
  make({.timeout = std::chrono::milliseconds(20)});
  demand("a", 10);
  int attempts = 0;
  while (store->waiting() > 0 && attempts < 100) {
    store->fail(0, StatusCode::kResourceExhausted);
    clock.advance_to_next_timer();
    ++attempts;
  }
  EXPECT_LE(attempts, 5);
  EXPECT_TRUE(code("a") == StatusCode::kResourceExhausted ||
              code("a") == StatusCode::kDeadlineExceeded);
  expect_idle();
}

TEST_F(FetchQueueTest, ClosingAnswersEverythingOnce) {
  make({.requests_in_flight_max = 2});
  for (const char* name : {"flying1", "flying2", "queued1", "queued2"})
    demand(name, 10);
  speculate("queued3", 10);
  queue->close();
  for (const char* name : {"flying1", "flying2", "queued1", "queued2", "queued3"})
    EXPECT_EQ(code(name), StatusCode::kCancelled) << name;
  EXPECT_EQ(submit(Urgency::kDemanded, "late", 1).error().code(), StatusCode::kCancelled);
  EXPECT_EQ(store->calls(), 2u) << "nothing was started meanwhile";
  expect_idle();
  queue->close();
}

TEST_F(FetchQueueTest, ClosingEndsAWaitForMemory) {
  make({});
  demand("a", 10);
  store->fail(0, StatusCode::kResourceExhausted);
  queue->close();
  EXPECT_EQ(code("a"), StatusCode::kCancelled);
  EXPECT_EQ(clock.armed_timers(), 0u);
  expect_idle();
}

// What the queue promises, from outside: bounds, exactly one answer, and an end.
TEST_F(FetchQueueTest, KeepsItsBoundsUnderRandomLoad) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    ManualExecutor executor(seed);
    const FetchQueueOptions options{
        .bytes_in_flight_max = 1000,
        .requests_in_flight_max = static_cast<std::uint32_t>(1 + random() % 12),
        .speculative_bytes_queued_max = 2000,
        .demanded_queued_max = 20};
    queue = std::make_unique<FetchQueue>(options, executor, clock, metrics);
    std::size_t answered = 0;
    std::vector<FetchQueue::Ticket> tickets;
    std::vector<Fetched> held;
    const auto step = [&] {
      const std::uint64_t bytes = 1 + random() % 400;
      const Urgency urgency = random() % 2 == 0 ? Urgency::kDemanded : Urgency::kSpeculative;
      auto ticket = queue->submit(
          urgency, store,
          GetRequest{.key = ObjectKey("k"), .range = ByteRange{0, bytes}, .identity = {}}, 0,
          [&](Result<Fetched> result) {
            ++answered;
            if (result) held.push_back(*std::move(result));
          });
      if (ticket) tickets.push_back(*ticket);
    };
    for (int i = 0; i < 1500; ++i) {
      switch (random() % 8) {
        case 0:
        case 1:
          step();
          break;
        case 2:
          if (!tickets.empty()) queue->promote(tickets[random() % tickets.size()]);
          break;
        case 3:
          if (!held.empty()) {
            std::swap(held[random() % held.size()], held.back());
            held.pop_back();
          }
          break;
        case 4:
        case 5:
          if (store->waiting() > 0) store->answer(random() % store->waiting());
          break;
        case 6:
          if (store->waiting() > 0) {
            store->fail(random() % store->waiting(), random() % 2 == 0
                                                         ? StatusCode::kUnavailable
                                                         : StatusCode::kResourceExhausted);
          }
          break;
        case 7:
          executor.run_one();
          clock.advance(std::chrono::milliseconds(random() % 3));
          break;
      }
      ASSERT_LE(bytes_in_flight(), 1000);
      ASSERT_LE(requests_in_flight(), options.requests_in_flight_max);
      ASSERT_LE(store->waiting(), static_cast<std::size_t>(requests_in_flight()));
    }
    answer_all(executor, held, [&] { return answered == tickets.size(); });
    ASSERT_EQ(answered, tickets.size());
    queue->close();
    expect_idle();
    ASSERT_EQ(store->waiting(), 0u);
  }
}

TEST_F(FetchQueueTest, ThreadsThatCloseAndSubmitLoseNothing) {
  for (int round = 0; round < 20; ++round) {
    ThreadPool pool({.name = "answers", .threads = 2, .queued_tasks_max = 1024});
    queue = std::make_unique<FetchQueue>(
        FetchQueueOptions{.bytes_in_flight_max = 100, .requests_in_flight_max = 4}, pool, clock,
        metrics);
    std::atomic<int> accepted = 0;
    std::atomic<int> answered = 0;
    std::atomic<bool> refused = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 500 && !refused; ++n) {
          auto ticket = queue->submit(
              n % 2 == 0 ? Urgency::kDemanded : Urgency::kSpeculative, store,
              GetRequest{.key = ObjectKey("k"), .range = ByteRange{0, 30}, .identity = {}}, 0,
              [&](Result<Fetched>) { ++answered; });
          if (ticket) {
            ++accepted;
            queue->promote(*ticket);
          } else if (ticket.error() == StatusCode::kCancelled) {
            refused = true;
          }
        }
      });
    }
    threads.emplace_back([&] {
      while (accepted < 30 * (round + 1) && accepted < 1500)
        std::this_thread::yield();
      queue->close();
    });
    for (std::thread& thread : threads)
      thread.join();
    queue->close();
    ASSERT_EQ(answered, accepted);
    expect_idle();
  }
}

}  // namespace
}  // namespace millrace
