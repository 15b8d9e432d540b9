#include <atomic>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

#include "base/cancellation.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread_pool.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

TEST(SystemClock, SleepsUntilTheTime) {
  Clock& clock = system_clock();
  const TimePoint when = clock.now() + 5ms;
  EXPECT_TRUE(clock.sleep_until(when, nullptr));
  EXPECT_GE(clock.now(), when);
  Cancellation cancel;
  EXPECT_TRUE(clock.sleep_until(clock.now() + 1ms, &cancel));
}

TEST(SystemClock, CancellationWakesASleeper) {
  Cancellation cancel;
  std::thread sleeper([&] { EXPECT_FALSE(system_clock().sleep_until(TimePoint::max(), &cancel)); });
  cancel.request();
  sleeper.join();
  EXPECT_FALSE(system_clock().sleep_until(system_clock().now() + 1h, &cancel)) << "at once";
}

TEST(SystemClock, TimersFireInOrderAndNotEarly) {
  Clock& clock = system_clock();
  ThreadPool pool({.name = "t", .threads = 1});
  std::vector<int> order;
  std::latch done(2);
  const TimePoint when = clock.now() + 3ms;
  const auto late = clock.schedule(when + 2ms, pool, [&] {
    order.push_back(2);
    done.count_down();
  });
  const auto early = clock.schedule(when, pool, [&] {
    EXPECT_GE(clock.now(), when);
    order.push_back(1);
    done.count_down();
  });
  done.wait();
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST(SystemClock, AnEarlierTimerOvertakesTheOneWaitedFor) {
  std::latch done(1);
  const auto far = system_clock().schedule(system_clock().now() + 1h, inline_executor(),
                                           [] { FAIL() << "an hour has not passed"; });
  const auto near =
      system_clock().schedule(system_clock().now(), inline_executor(), [&] { done.count_down(); });
  done.wait();
}

TEST(SystemClock, ATaskMayDestroyItsOwnTimer) {
  std::latch done(1);
  Mutex mutex;
  std::unique_ptr<Clock::Timer> timer;
  {
    MutexLock lock(mutex);
    timer = system_clock().schedule(system_clock().now(), inline_executor(), [&] {
      MutexLock inner(mutex);
      timer.reset();
      inner.unlock();
      done.count_down();
    });
  }
  done.wait();
}

TEST(SystemClock, DestroyingATimerUnderALockThatItsInlineTaskTakesDoesNotHang) {
  auto mutex = std::make_shared<Mutex>();
  for (int i = 0; i < 500; ++i) {
    auto timer = system_clock().schedule(system_clock().now() + 20us, inline_executor(),
                                         [mutex] { MutexLock lock(*mutex); });
    MutexLock lock(*mutex);
    timer.reset();
  }
}

// The promise that a destroyed timer leaves its executor alone: under the sanitizers a touch of the
// dead pool, or of the dead resource, would show.
TEST(SystemClock, AnExecutorMayGoRightAfterItsTimer) {
  std::atomic<int> fired = 0;
  for (int i = 0; i < 300; ++i) {
    auto resource = std::make_unique<int>(i);
    ThreadPool pool({.name = "short", .threads = 1});
    auto timer = system_clock().schedule(
        system_clock().now() + std::chrono::microseconds(i), pool,
        [&fired, owned = std::move(resource)] { fired += *owned >= 0 ? 1 : 0; });
    timer.reset();
  }
  EXPECT_LE(fired, 300);
}

}  // namespace
}  // namespace millrace
