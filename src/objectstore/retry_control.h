#pragma once

#include <memory>

#include "base/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "metrics/metrics.h"
#include "objectstore/hedging_latency.h"
#include "objectstore/retry_budget.h"
#include "objectstore/retry_pause.h"
#include "objectstore/retry_policy.h"

namespace millrace {

// All that the retries against one store share: the policy, the budget, the pause and what is known
// about latency. One per store, held by RetryingObjectStore and by a back end that retries parts of
// an upload itself. Clock, random and metrics must outlive it. Safe from any thread.
class RetryControl {
 public:
  RetryControl(const RetryPolicy& policy, Clock& clock, Random& random, Metrics& metrics);

  const RetryPolicy& policy() const { return policy_; }
  Clock& clock() { return clock_; }
  Random& random() { return random_; }
  const RetryBudget& budget() const { return budget_; }
  const RetryPause& pause() const { return pause_; }
  HedgingLatency& latency() { return latency_; }

  // Takes a retry's cost; counts the refusal when there is not enough.
  [[nodiscard]] bool try_spend_on_retry();
  // Takes a hedge's cost, unless the budget is short or the store asked for less.
  [[nodiscard]] bool try_spend_on_hedge();
  // Tells what an attempt met.
  void on_failure(const Status& error);
  void on_success(bool after_retry);
  void on_hedge_won() { hedges_won_.add(); }

  // How long retry number `retry`, from 1, waits after `error`, drawn from the jitter. The pause of
  // the whole store comes on top.
  Duration backoff(std::uint32_t retry, const Status& error);
  // When a request may start that could start at `when`: later while the store is paused, and then
  // spread out, so that the end of a pause is no stampede.
  TimePoint after_pause(TimePoint when);

 private:
  const RetryPolicy policy_;
  Clock& clock_;
  Random& random_;
  RetryBudget budget_;
  RetryPause pause_;
  HedgingLatency latency_;

  Counter& retries_;
  Counter& refused_;
  Counter& throttles_;
  Counter& hedges_started_;
  Counter& hedges_won_;
  const std::shared_ptr<Gauge> tokens_;  // Of this store.
};

}  // namespace millrace
