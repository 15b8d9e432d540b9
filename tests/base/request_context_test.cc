#include "base/request_context.h"

#include <gtest/gtest.h>

#include "base/manual_clock.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

TEST(RequestContext, BackgroundHasNoEnd) {
  ManualClock clock;
  const auto context = RequestContext::background();
  EXPECT_FALSE(context.has_deadline());
  EXPECT_EQ(context.principal(), "millrace");
  EXPECT_TRUE(context.check(clock).ok());
  context.cancellation().request();
  EXPECT_TRUE(RequestContext::background().check(clock).ok()) << "each has its own cancellation";
}

TEST(RequestContext, EndsAtItsDeadline) {
  ManualClock clock;
  const RequestContext context(clock.now() + 10s, "alice");
  EXPECT_EQ(context.principal(), "alice");
  clock.advance(10s - 1ns);
  EXPECT_TRUE(context.check(clock).ok());
  clock.advance(1ns);
  EXPECT_EQ(context.check(clock), StatusCode::kDeadlineExceeded);
}

TEST(RequestContext, WithDeadlineOnlyShortens) {
  ManualClock clock;
  const RequestContext context(clock.now() + 10s, "alice");
  EXPECT_EQ(context.with_deadline(clock.now() + 5s).deadline(), clock.now() + 5s);
  EXPECT_EQ(context.with_deadline(clock.now() + 20s).deadline(), clock.now() + 10s);
}

TEST(RequestContext, CopiesShareTheCancellationAndChildrenDoNot) {
  ManualClock clock;
  const RequestContext context(TimePoint::max(), "alice");
  const auto copy = context.with_deadline(clock.now() + 1h);
  const auto child = context.with_cancellation(std::make_shared<Cancellation>());
  context.cancellation().request();
  EXPECT_EQ(copy.check(clock), StatusCode::kCancelled);
  EXPECT_TRUE(child.check(clock).ok());
  EXPECT_EQ(child.principal(), "alice");
}

TEST(RequestContext, RequestsOfOneCallerShareWhatIsKnownOfIt) {
  const auto caller = std::make_shared<const Caller>(Caller{"uid:7", "exp42"});
  const RequestContext context(TimePoint::max(), caller);
  const auto child = context.with_cancellation(std::make_shared<Cancellation>());
  EXPECT_EQ(child.caller(), caller);
  EXPECT_EQ(child.principal(), "uid:7");
}

TEST(RequestContext, CancelledWinsOverLate) {
  ManualClock clock;
  const RequestContext context(clock.now(), "alice");
  context.cancellation().request();
  EXPECT_EQ(context.check(clock), StatusCode::kCancelled);
}

}  // namespace
}  // namespace millrace
