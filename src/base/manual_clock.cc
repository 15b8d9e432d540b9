#include "base/manual_clock.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "base/cancellation.h"
#include "base/timer_queue.h"

namespace millrace {

namespace {

// Not zero, so that "some time before now" is a valid time.
constexpr TimePoint kStart{std::chrono::hours(24)};
// 2026-01-01T00:00:00Z: a date that signatures and log lines can carry.
constexpr WallTime kWallStart{std::chrono::seconds(1'767'225'600)};

}  // namespace

struct ManualClock::State {
  // Moves time on, never back.
  void move_to(TimePoint when) {
    MutexLock lock(mutex);
    now = std::max(now, when);
  }
  // Fires the first timer if it is due by `limit`, at its own time.
  bool fire_next(TimePoint limit) {
    const std::optional<TimePoint> next = timers->next();
    if (!next || *next > limit) return false;
    move_to(*next);
    return timers->fire_one(*next);
  }

  const std::shared_ptr<TimerQueue> timers = std::make_shared<TimerQueue>();

  mutable Mutex mutex;
  TimePoint now MR_GUARDED_BY(mutex) = kStart;
  Duration wall_offset MR_GUARDED_BY(mutex){0};
};

ManualClock::ManualClock() : state_(std::make_unique<State>()) {}
ManualClock::~ManualClock() = default;

TimePoint ManualClock::now() const {
  MutexLock lock(state_->mutex);
  return state_->now;
}

WallTime ManualClock::wall_now() const {
  MutexLock lock(state_->mutex);
  return kWallStart + (state_->now - kStart) + state_->wall_offset;
}

bool ManualClock::sleep_until(TimePoint when, const Cancellation* cancel) {
  while (now() < when) {
    if (cancel != nullptr && cancel->requested()) return false;
    if (state_->fire_next(when)) continue;
    assert(when != TimePoint::max() && "a sleep without end, and no timer that could end it");
    state_->move_to(when);
  }
  return true;
}

std::unique_ptr<Clock::Timer> ManualClock::schedule(TimePoint when, Executor& executor, Task task) {
  return state_->timers->arm(when, executor, std::move(task));
}

void ManualClock::advance(Duration by) { advance_to(now() + by); }

void ManualClock::advance_to(TimePoint when) {
  do {
    while (state_->fire_next(when)) {
    }
    state_->move_to(when);
    // Another thread may have armed one for a time that has just passed.
  } while (state_->fire_next(when));
}

bool ManualClock::advance_to_next_timer() { return state_->fire_next(TimePoint::max()); }

std::size_t ManualClock::armed_timers() const { return state_->timers->size(); }

void ManualClock::set_wall_offset(Duration offset) {
  MutexLock lock(state_->mutex);
  state_->wall_offset = offset;
}

}  // namespace millrace
