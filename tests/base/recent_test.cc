#include "base/recent.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/thread_pool.h"

namespace millrace {
namespace {

class RecentTest : public ::testing::Test {
 protected:
  using Age = Recent<std::string>::Age;

  std::string ask(const std::string& name, const std::string& answer) {
    return recent
        .get(context, name,
             [&](const RequestContext&) -> Result<std::string> {
               ++asked;
               return answer;
             })
        .value();
  }
  Result<std::string> ask(const std::string& name, StatusCode code) {
    return recent.get(context, name, [&](const RequestContext&) -> Result<std::string> {
      ++asked;
      return failure(code, "no");
    });
  }

  const RequestContext context = RequestContext::background();
  ManualClock clock;
  Recent<std::string> recent{clock, std::chrono::seconds(5), 3};
  int asked = 0;
  LogCapture log;
};

TEST_F(RecentTest, AnAnswerHoldsForItsLifetime) {
  EXPECT_EQ(ask("a", "1"), "1");
  clock.advance(std::chrono::milliseconds(4999));
  EXPECT_EQ(ask("a", "2"), "1");
  clock.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(ask("a", "3"), "3");
  EXPECT_EQ(asked, 2);
}

TEST_F(RecentTest, AnOldAnswerIsBetterThanNone) {
  ask("a", "1");
  clock.advance(std::chrono::hours(1));
  EXPECT_EQ(ask("a", StatusCode::kUnavailable).value(), "1");
  EXPECT_NE(log.text().find("about=a"), std::string::npos) << log.text();
  EXPECT_EQ(ask("b", StatusCode::kUnavailable).error().code(), StatusCode::kUnavailable);
  clock.advance(std::chrono::seconds(5));
  EXPECT_EQ(ask("a", StatusCode::kNotFound).error().code(), StatusCode::kNotFound);
  EXPECT_EQ(ask("a", StatusCode::kUnavailable).error().code(), StatusCode::kUnavailable)
      << "the store has said that it is gone";
}

TEST_F(RecentTest, WhoeverGoesAwayLeavesWhatIsKnown) {
  ask("a", "1");
  clock.advance(std::chrono::seconds(5));
  EXPECT_FALSE(ask("a", StatusCode::kCancelled));
  EXPECT_EQ(ask("a", StatusCode::kUnavailable).value(), "1");
}

TEST_F(RecentTest, AStoreThatIsAwayIsAskedNowAndThen) {
  ask("a", "1");
  ask("b", "1");
  clock.advance(std::chrono::seconds(5));
  asked = 0;
  for (int n = 0; n < 100; ++n) {
    EXPECT_EQ(ask("a", StatusCode::kUnavailable).value(), "1");
    EXPECT_EQ(ask("b", StatusCode::kUnavailable).value(), "1");
    EXPECT_EQ(recent.at_or_before("b", Age::kFresh), "1");
  }
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(ask("c", "2"), "2") << "what is not known is always asked for";
  EXPECT_EQ(ask("a", "2"), "2") << "and tells that the store is back";
  clock.advance(std::chrono::seconds(5));
  EXPECT_EQ(ask("a", StatusCode::kDeadlineExceeded).value(), "2");
  clock.advance(std::chrono::seconds(5));
  EXPECT_EQ(ask("a", "3"), "3");
}

TEST_F(RecentTest, TheOldestMakesRoom) {
  for (const char* name : {"a", "b", "c"})
    ask(name, "1");
  clock.advance(std::chrono::seconds(5));
  ask("a", "2");
  ask("d", "2");
  EXPECT_EQ(ask("a", "3"), "2");
  EXPECT_EQ(ask("c", StatusCode::kUnavailable).value(), "1");
  EXPECT_FALSE(ask("b", StatusCode::kUnavailable));
}

TEST_F(RecentTest, FindsWhatIsAtOrBefore) {
  EXPECT_FALSE(recent.at_or_before("z", Age::kAny));
  ask("b", "1");
  clock.advance(std::chrono::seconds(3));
  ask("d", "2");
  EXPECT_FALSE(recent.at_or_before("a", Age::kAny));
  EXPECT_EQ(recent.at_or_before("b", Age::kFresh), "1");
  EXPECT_EQ(recent.at_or_before("c", Age::kFresh), "1");
  EXPECT_EQ(recent.at_or_before("e", Age::kFresh), "2");
  clock.advance(std::chrono::seconds(3));
  EXPECT_FALSE(recent.at_or_before("c", Age::kFresh));
  EXPECT_EQ(recent.at_or_before("c", Age::kAny), "1");
  ask("b", "3");
  clock.advance(std::chrono::seconds(2));
  EXPECT_EQ(recent.at_or_before("e", Age::kFresh), "3") << "behind one that is too old";
  recent.forget("b");
  recent.forget("b");
  EXPECT_FALSE(recent.at_or_before("c", Age::kAny));
}

// A store that takes a question and says nothing until it is let go.
class HangingRecentTest : public ::testing::Test {
 protected:
  std::string get(const std::string& name) {
    return recent->get(context, name, [this](const RequestContext& asking) { return ask(asking); })
        .value_or("none");
  }
  Result<std::string> ask(const RequestContext& asking) {
    ++asked;
    while (hangs && !asking.cancellation().requested())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (asking.cancellation().requested()) return failure(StatusCode::kCancelled, "called off");
    return std::to_string(asked);
  }
  // Whether there is another answer in time.
  bool changes(const std::string& name, const std::string& before) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (get(name) == before) {
      if (std::chrono::steady_clock::now() > deadline) return false;
    }
    return true;
  }

  const RequestContext context = RequestContext::background();
  std::atomic<int> asked = 0;
  std::atomic<bool> hangs = false;
  std::atomic<bool> released = false;  // Who occupies the threads of the pool.
  ManualClock clock;
  LogCapture log;
  ThreadPool pool{{.name = "refresh", .threads = 2}};
  std::unique_ptr<Recent<std::string>> recent = std::make_unique<Recent<std::string>>(
      clock, std::chrono::seconds(5), 3,
      RecentRefresh{.executor = &pool, .patience = std::chrono::milliseconds(20)});
};

TEST_F(HangingRecentTest, AnOldAnswerIsNotHeldBackForLong) {
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(get("b"), "2");
  clock.advance(std::chrono::seconds(5));
  hangs = true;
  for (int n = 0; n < 100; ++n) {
    EXPECT_EQ(get("a"), "1");
    EXPECT_EQ(get("b"), "2");
  }
  EXPECT_EQ(asked, 3) << "one question shows that the store hangs";
  EXPECT_NE(log.text().find("no answer yet"), std::string::npos) << log.text();
  hangs = false;
  EXPECT_TRUE(changes("a", "1"));
  EXPECT_TRUE(changes("b", "2"));
}

TEST_F(HangingRecentTest, AQuestionFromBeforeAChangeIsAskedAgain) {
  get("a");
  clock.advance(std::chrono::seconds(5));
  hangs = true;
  EXPECT_EQ(get("a"), "1");
  recent->age_all();
  hangs = false;
  // The second question was asked before the change.
  EXPECT_TRUE(changes("a", "1"));
  EXPECT_TRUE(changes("a", "2"));
}

TEST_F(HangingRecentTest, WhatWaitsForAThreadIsNotWaitedFor) {
  get("a");
  clock.advance(std::chrono::seconds(5));
  for (int n = 0; n < 2; ++n) {
    ASSERT_TRUE(pool.submit([this] {
                      while (!released)
                        std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    })
                    .ok());
  }
  EXPECT_EQ(get("a"), "1");
  recent.reset();
  released = true;
  EXPECT_EQ(asked, 1);
}

TEST_F(HangingRecentTest, WhatIsBeingAskedIsCalledOffAtTheEnd) {
  get("a");
  clock.advance(std::chrono::seconds(5));
  hangs = true;
  get("a");
  recent.reset();
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace millrace
