#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace millrace {

// The armed timers of a clock, in order of their time, ties in order of arming.
//
// Invariants:
//  1. A task is in `armed_`, or it was taken out by exactly one of: the thread that fires it, or
//  the
//     destructor of its timer.
//  2. Tasks are handed over, and destroyed, outside the lock.
//  3. A timer's destructor waits for a handover in progress on another thread, since the executor
//  may
//     be destroyed after it. The inline executor lives for ever and runs the task inside the
//     handover, so there it does not wait: waiting could dead-lock with a lock that the task takes.
//
// All methods are safe from any thread. Timers keep the queue alive.
class TimerQueue : public std::enable_shared_from_this<TimerQueue> {
 public:
  std::unique_ptr<Clock::Timer> arm(TimePoint when, Executor& executor, Task task);

  // Hands over the first timer if it is due at `now`. Returns false when there was none.
  bool fire_one(TimePoint now);
  // Waits, in real time, until the first timer is due, and hands it over.
  void wait_and_fire();

  // When the first timer is due.
  std::optional<TimePoint> next() const;
  std::size_t size() const;

 private:
  class ArmedTimer;
  using Key = std::pair<TimePoint, std::uint64_t>;
  struct Entry {
    std::uint64_t id;
    Executor* executor;
    Task task;
  };
  struct Handover {
    std::uint64_t id;
    std::thread::id thread;
    Executor* executor;
  };

  void disarm(const Key& key);
  // Firing in two steps: out of the queue under the lock, to the executor without it.
  Entry take_first() MR_REQUIRES(mutex_);
  void hand_over(Entry entry) MR_EXCLUDES(mutex_);
  bool must_wait_for(std::uint64_t id) const MR_REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar first_changed_;
  CondVar handover_ended_;
  std::map<Key, Entry> armed_ MR_GUARDED_BY(mutex_);
  std::vector<Handover> handovers_ MR_GUARDED_BY(mutex_);
  std::uint64_t next_id_ MR_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
