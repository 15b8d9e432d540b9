#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/mutex.h"

namespace millrace {

// The time before which nothing is sent to a store that asked for less. Shared by all operations:
// one that keeps on sending would draw the next refusal for everybody.
//
// The pause grows only with refusals that come after its end: the many answers to requests that
// were under way when it began are one refusal. Each request that is answered well afterwards lets
// the next pause shrink again. Safe from any thread.
class RetryPause {
 public:
  RetryPause(Duration base, Duration max) : base_(base), max_(max) {}

  // The store asked for less at `now`, perhaps for how long.
  void on_throttled(TimePoint now, std::optional<Duration> retry_after);
  void on_success(TimePoint now);

  // No request may start before this; long ago when the store never complained.
  TimePoint not_before() const;
  bool active(TimePoint now) const { return now < not_before(); }

 private:
  const Duration base_;
  const Duration max_;

  // Written under the mutex; read without it, because every request looks.
  std::atomic<std::int64_t> not_before_ns_{INT64_MIN};
  std::atomic<std::uint32_t> level_{0};
  Mutex mutex_;
};

}  // namespace millrace
