#include <pthread.h>

#include <atomic>
#include <memory>
#include <thread>

#include "base/cancellation.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/timer_queue.h"

namespace millrace {

namespace {

class SystemClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
  WallTime wall_now() const override { return std::chrono::system_clock::now(); }
  bool sleep_until(TimePoint when, const Cancellation* cancel) override;
  std::unique_ptr<Timer> schedule(TimePoint when, Executor& executor, Task task) override;

  // In a child that was forked: the thread is the parent's, and the queue may be locked for ever.
  void forget_timers() { timers_.store(nullptr); }

 private:
  // Those of this process, with their thread, which are never destroyed.
  TimerQueue& timers();

  std::atomic<TimerQueue*> timers_ = nullptr;
};

bool SystemClock::sleep_until(TimePoint when, const Cancellation* cancel) {
  Mutex mutex;
  CondVar woken;
  bool cancelled = false;
  Cancellation::CallbackId subscription = 0;
  if (cancel != nullptr) {
    subscription = cancel->subscribe([&] {
      MutexLock lock(mutex);
      cancelled = true;
      woken.notify_all();
    });
  }
  {
    MutexLock lock(mutex);
    while (!cancelled && now() < when) {
      if (when == TimePoint::max()) {
        woken.wait(mutex);
      } else {
        woken.wait_until(mutex, when);
      }
    }
  }
  // Waits for a callback that is running: it refers to this frame.
  if (cancel != nullptr) cancel->unsubscribe(subscription);
  return now() >= when;
}

std::unique_ptr<Clock::Timer> SystemClock::schedule(TimePoint when, Executor& executor, Task task) {
  return timers().arm(when, executor, std::move(task));
}

TimerQueue& SystemClock::timers() {
  if (TimerQueue* const known = timers_.load()) return *known;
  auto fresh = std::make_shared<TimerQueue>();
  TimerQueue* known = nullptr;
  if (!timers_.compare_exchange_strong(known, fresh.get())) return *known;
  // Detached: it lives as long as the process, as this clock does, and keeps the queue.
  std::thread([fresh] {
    pthread_setname_np(pthread_self(), "timer");
    while (true)
      fresh->wait_and_fire();
  }).detach();
  return *fresh;
}

SystemClock& the_system_clock() {
  // Never destroyed: its thread, and timers in statics, use it until the process ends.
  static auto* const clock = [] {
    ::pthread_atfork(nullptr, nullptr, [] { the_system_clock().forget_timers(); });
    return new SystemClock;
  }();
  return *clock;
}

}  // namespace

Clock& system_clock() { return the_system_clock(); }

}  // namespace millrace
