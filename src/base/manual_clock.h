#pragma once

#include <cstddef>
#include <memory>

#include "base/clock.h"

namespace millrace {

// Time that moves only when a test says so.
//
// sleep_until() on the test's own thread would wait for ever, so it moves the clock itself: a
// sleeper makes time pass, as in a simulation with one runner. Timers that fall due on the way are
// handed to their executors in order of their time, ties in order of arming. Starts at
// 2026-01-01T00:00:00Z. All methods are safe from any thread; tasks are handed over on the thread
// that moves the clock.
class ManualClock final : public Clock {
 public:
  ManualClock();
  ~ManualClock() override;

  TimePoint now() const override;
  WallTime wall_now() const override;
  bool sleep_until(TimePoint when, const Cancellation* cancel) override;
  std::unique_ptr<Timer> schedule(TimePoint when, Executor& executor, Task task) override;

  void advance(Duration by);
  void advance_to(TimePoint when);
  // Moves to the next armed timer and fires it. Returns false when none is armed.
  bool advance_to_next_timer();
  std::size_t armed_timers() const;
  // Sets civil time apart from monotonic time, as a clock that is wrong would be.
  void set_wall_offset(Duration offset);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace
