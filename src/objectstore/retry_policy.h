#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace millrace {

// When a second GET is sent beside a slow first one.
struct HedgePolicy {
  bool enabled = true;
  // Slower than this part of recent reads of about the same size. With 0.99 a healthy store sees
  // one per cent more requests.
  double quantile = 0.99;
  // Below this many samples a 99th percentile is a guess.
  std::uint32_t samples_min = 100;
  // A read that is slow by less than this is not worth a request.
  Duration delay_min = std::chrono::milliseconds(20);
};

// How one store is retried. The defaults follow the field: five attempts and a quota of 500 tokens
// at 5 per retry are what AWS's own clients use.
struct RetryPolicy {
  // The first one included.
  std::uint32_t attempts_max = 5;
  // Before retry n the wait is drawn evenly from [0, min(backoff_max, backoff_base * 2^n)): full
  // jitter, which spreads clients that failed together. 50 ms is a few round trips inside a region;
  // 5 s is as long as S3's own slow tail.
  Duration backoff_base = std::chrono::milliseconds(50);
  Duration backoff_max = std::chrono::seconds(5);
  // An answer "slow down" stops the whole store for this long, doubled for each that follows the
  // end of a pause. The store's own Retry-After goes first, up to pause_max.
  Duration pause_base = std::chrono::milliseconds(200);
  Duration pause_max = std::chrono::seconds(20);
  // See RetryBudget.
  std::int64_t tokens_max = 500;
  std::int64_t retry_cost_tokens = 5;
  HedgePolicy hedge = {};
};

}  // namespace millrace
