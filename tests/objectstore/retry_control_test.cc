#include "objectstore/retry_control.h"

#include <memory>

#include <gtest/gtest.h>

#include "base/manual_clock.h"

namespace millrace {
namespace {

TEST(RetryControl, TheTokensShownAreThoseOfTheStoreThatHasLeast) {
  ManualClock clock;
  SeededRandom random(1);
  Metrics metrics;
  const Gauge& shown = metrics.gauge(MetricId::kStoreRetryTokens);
  const RetryPolicy policy{.tokens_max = 10, .retry_cost_tokens = 5};
  auto failing = std::make_unique<RetryControl>(policy, clock, random, metrics);
  RetryControl healthy(policy, clock, random, metrics);
  EXPECT_EQ(shown.value(), 10);
  EXPECT_TRUE(failing->try_spend_on_retry());
  EXPECT_TRUE(failing->try_spend_on_retry());
  EXPECT_FALSE(failing->try_spend_on_retry());
  healthy.on_success(false);
  EXPECT_EQ(shown.value(), 0) << "whichever spoke last";
  failing->on_success(true);
  EXPECT_EQ(shown.value(), 5);
  failing.reset();
  EXPECT_EQ(shown.value(), 10) << "a store that was closed counts no more";
}

}  // namespace
}  // namespace millrace
