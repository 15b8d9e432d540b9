#include <pthread.h>

#include <memory>
#include <mutex>
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

 private:
  const std::shared_ptr<TimerQueue> timers_ = std::make_shared<TimerQueue>();
  std::once_flag thread_started_;
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
  std::call_once(thread_started_, [this] {
    // Detached: it lives as long as the process, as this clock does.
    std::thread([timers = timers_] {
      pthread_setname_np(pthread_self(), "timer");
      while (true)
        timers->wait_and_fire();
    }).detach();
  });
  return timers_->arm(when, executor, std::move(task));
}

}  // namespace

Clock& system_clock() {
  // Never destroyed: its thread, and timers in statics, use it until the process ends.
  static auto* const clock = new SystemClock;
  return *clock;
}

}  // namespace millrace
