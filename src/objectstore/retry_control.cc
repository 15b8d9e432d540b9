#include "objectstore/retry_control.h"

#include <algorithm>

namespace millrace {

namespace {

// The first requests after a pause are spread over this part of pause_base.
constexpr double kPauseSpread = 0.5;

Duration scaled(Duration duration, double factor) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(duration.count()) * factor));
}

}  // namespace

RetryControl::RetryControl(const RetryPolicy& policy, Clock& clock, Random& random,
                           Metrics& metrics)
    : policy_(policy),
      clock_(clock),
      random_(random),
      budget_(policy.tokens_max, policy.retry_cost_tokens),
      pause_(policy.pause_base, policy.pause_max),
      latency_(policy.hedge),
      retries_(metrics.counter(MetricId::kStoreRetries)),
      refused_(metrics.counter(MetricId::kStoreRetriesRefused)),
      throttles_(metrics.counter(MetricId::kStoreThrottles)),
      hedges_started_(metrics.counter(MetricId::kStoreHedgesStarted)),
      hedges_won_(metrics.counter(MetricId::kStoreHedgesWon)),
      tokens_(metrics.gauge(MetricId::kStoreRetryTokens).part()) {
  tokens_->set(budget_.tokens());
}

bool RetryControl::try_spend_on_retry() {
  const bool granted = budget_.try_spend();
  (granted ? retries_ : refused_).add();
  tokens_->set(budget_.tokens());
  return granted;
}

bool RetryControl::try_spend_on_hedge() {
  if (!policy_.hedge.enabled || pause_.active(clock_.now()) || !budget_.try_spend()) return false;
  hedges_started_.add();
  tokens_->set(budget_.tokens());
  return true;
}

void RetryControl::on_failure(const Status& error) {
  if (error != StatusCode::kThrottled) return;
  throttles_.add();
  pause_.on_throttled(clock_.now(), error.retry_after());
}

void RetryControl::on_success(bool after_retry) {
  budget_.on_success(after_retry);
  pause_.on_success(clock_.now());
  tokens_->set(budget_.tokens());
}

Duration RetryControl::backoff(std::uint32_t retry, const Status& error) {
  const std::uint32_t doublings = std::min(retry, 20U);
  const Duration ceiling =
      std::min(policy_.backoff_max, policy_.backoff_base * (Duration::rep{1} << doublings));
  const Duration wait = scaled(ceiling, random_.uniform());
  // A 503 that is no "slow down" may still say when to come back.
  const Duration asked =
      std::min(error.retry_after().value_or(Duration::zero()), policy_.pause_max);
  return std::max(wait, asked);
}

TimePoint RetryControl::after_pause(TimePoint when) {
  const TimePoint end = pause_.not_before();
  if (when >= end) return when;
  return end + scaled(policy_.pause_base, kPauseSpread * random_.uniform());
}

}  // namespace millrace
