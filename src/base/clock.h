#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/task.h"

namespace millrace {

class Cancellation;
class Executor;

using Duration = std::chrono::nanoseconds;
// Monotonic; deadlines and latencies. Comparable only within one process.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;
// Civil time; signatures, logs, expiry of credentials. May jump.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

// Time, and waiting for it. The seam through which every time-out, back-off and timer passes, so
// that simulation can make years pass in seconds.
//
// All methods are safe from any thread.
class Clock {
 public:
  // A timer that has been armed. Destroying it cancels the task if it has not been handed to its
  // executor yet; it may then already be running or queued. Waits for a handover in progress on
  // another thread (a short push), so that the executor may be destroyed next; never for a task on
  // the inline executor.
  class Timer {
   public:
    virtual ~Timer() = default;
  };

  virtual ~Clock() = default;

  virtual TimePoint now() const = 0;
  virtual WallTime wall_now() const = 0;

  // Blocks until `when` or until `cancel` (may be null) is requested. Returns true when the time
  // came.
  virtual bool sleep_until(TimePoint when, const Cancellation* cancel) = 0;

  // Hands `task` to `executor.resume()` once now() >= when. The executor must outlive the timer.
  [[nodiscard]] virtual std::unique_ptr<Timer> schedule(TimePoint when, Executor& executor,
                                                        Task task) = 0;
};

// The machine's clocks, with one timer thread that is started on first use.
Clock& system_clock();

}  // namespace millrace
