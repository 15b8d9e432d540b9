#include "objectstore/retry_pause.h"

#include <algorithm>

namespace millrace {

namespace {

// Doubling more often would pass any sensible maximum and, later, the range of Duration.
constexpr std::uint32_t kLevelMax = 16;

}  // namespace

TimePoint RetryPause::not_before() const {
  return TimePoint(Duration(not_before_ns_.load(std::memory_order_acquire)));
}

void RetryPause::on_throttled(TimePoint now, std::optional<Duration> retry_after) {
  MutexLock lock(mutex_);
  const std::uint32_t level = level_.load(std::memory_order_relaxed);
  Duration pause = std::min(max_, base_ * (Duration::rep{1} << level));
  if (retry_after) pause = std::clamp(*retry_after, Duration::zero(), max_);
  if (!active(now)) {
    level_.store(std::min(level + 1, kLevelMax), std::memory_order_relaxed);
  } else if (!retry_after) {
    return;  // Sent before the pause began: it tells nothing new.
  }
  const TimePoint until = std::max(not_before(), now + pause);
  not_before_ns_.store(until.time_since_epoch().count(), std::memory_order_release);
}

void RetryPause::on_success(TimePoint now) {
  if (level_.load(std::memory_order_relaxed) == 0) return;
  MutexLock lock(mutex_);
  // An answer during the pause is to a request from before it.
  if (active(now)) return;
  if (const std::uint32_t level = level_.load(std::memory_order_relaxed); level > 0) {
    level_.store(level - 1, std::memory_order_relaxed);
  }
}

}  // namespace millrace
