#include "base/recent.h"

#include <string>

#include <gtest/gtest.h>

#include "base/manual_clock.h"

namespace millrace {
namespace {

class RecentTest : public ::testing::Test {
 protected:
  using Age = Recent<std::string>::Age;

  std::string ask(const std::string& name, const std::string& answer) {
    return recent
        .get(name,
             [&]() -> Result<std::string> {
               ++asked;
               return answer;
             })
        .value();
  }
  Result<std::string> ask(const std::string& name, StatusCode code) {
    return recent.get(name, [&]() -> Result<std::string> {
      ++asked;
      return failure(code, "no");
    });
  }

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

}  // namespace
}  // namespace millrace
