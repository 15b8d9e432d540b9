#include "base/limiter.h"

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/manual_clock.h"
#include "base/mutex.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using Unit = Limiter::Unit;

TEST(Limiter, NeverGivesMoreThanItsCapacity) {
  Limiter limiter("fetch_bytes", Unit::kBytes, 4 * kMiB);
  auto a = limiter.try_reserve(3 * kMiB);
  ASSERT_TRUE(a);
  EXPECT_EQ(a->amount(), 3 * kMiB);
  const auto refused = limiter.try_reserve(2 * kMiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.error().message(),
            "limit 'fetch_bytes' is reached: 2 MiB asked, 1 MiB of 4 MiB free, 0 waiting");
  a->shrink_to(2 * kMiB);
  EXPECT_EQ(limiter.in_use(), 2 * kMiB);
  EXPECT_TRUE(limiter.try_reserve(2 * kMiB)) << "and it is returned at once";
  EXPECT_EQ(limiter.in_use(), 2 * kMiB);
}

TEST(Limiter, WhatCanNeverBeGrantedIsRefusedAtOnce) {
  Limiter limiter("handles", Unit::kCount, 10);
  EXPECT_EQ(limiter.capacity(), 10U);
  EXPECT_EQ(limiter.try_reserve(11).error(), StatusCode::kInvalidArgument);
  EXPECT_EQ(limiter.reserve(RequestContext::background(), 11).error(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(limiter.try_reserve(UINT64_MAX).error(), StatusCode::kInvalidArgument);
}

TEST(Limiter, MovedReservationsReturnOnce) {
  Limiter limiter("n", Unit::kCount, 10);
  auto a = *limiter.try_reserve(4);
  Limiter::Reservation b = std::move(a);
  EXPECT_EQ(a.amount(), 0U);  // NOLINT(bugprone-use-after-move): that is what is tested.
  EXPECT_EQ(limiter.in_use(), 4U);
  b = *limiter.try_reserve(5);
  EXPECT_EQ(limiter.in_use(), 5U);
}

TEST(Limiter, ReservationsMayOutliveIt) {
  Limiter::Reservation reservation;
  {
    Limiter limiter("n", Unit::kCount, 10);
    reservation = *limiter.try_reserve(4);
  }
  EXPECT_EQ(reservation.amount(), 4U);
}

TEST(Limiter, AnEndedContextIsRefusedBeforeWaiting) {
  ManualClock clock;
  Limiter limiter("n", Unit::kCount, 1, clock);
  EXPECT_EQ(limiter.reserve(RequestContext(clock.now(), "a"), 1).error(),
            StatusCode::kDeadlineExceeded);
  const RequestContext cancelled(TimePoint::max(), "a");
  cancelled.cancellation().request();
  EXPECT_EQ(limiter.reserve(cancelled, 1).error(), StatusCode::kCancelled);
  EXPECT_EQ(limiter.in_use(), 0U);
}

// A thread blocked in reserve(), seen from outside by the limiter's own error message.
void wait_for_line(Limiter& limiter, std::size_t waiting) {
  const std::string end = std::to_string(waiting) + " waiting";
  while (true) {
    const auto refused = limiter.try_reserve(limiter.capacity());
    ASSERT_FALSE(refused);
    if (refused.error().message().ends_with(end)) return;
    std::this_thread::yield();
  }
}

TEST(Limiter, WaitersAreServedInOrderAndNobodyOvertakes) {
  Limiter limiter("n", Unit::kCount, 10);
  auto held = *limiter.try_reserve(6);
  Mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> threads;
  std::latch all_granted(2);
  const auto wait_for = [&](int id, std::uint64_t amount) {
    threads.emplace_back([&, id, amount] {
      const auto mine = limiter.reserve(RequestContext::background(), amount);
      ASSERT_TRUE(mine);
      MutexLock lock(mutex);
      order.push_back(id);
      lock.unlock();
      // Holding until both are in makes the sum of the two part of the test: 8 + 2 fit exactly.
      all_granted.arrive_and_wait();
    });
  };
  wait_for(1, 8);
  wait_for_line(limiter, 1);
  wait_for(2, 2);
  wait_for_line(limiter, 2);
  EXPECT_EQ(limiter.try_reserve(1).error(), StatusCode::kResourceExhausted)
      << "4 are free, but the one that waits for 8 came first";
  EXPECT_TRUE(limiter.try_reserve(0));
  held.shrink_to(0);
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(limiter.in_use(), 0U);
  EXPECT_EQ(order.size(), 2U);
}

TEST(Limiter, TheDeadlineEndsAWaitAndLetsTheNextOneIn) {
  ManualClock clock;
  Limiter limiter("n", Unit::kCount, 10, clock);
  const auto held = limiter.try_reserve(6);
  std::thread large([&] {
    const auto result = limiter.reserve(RequestContext(clock.now() + 5s, "a"), 8);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error(), StatusCode::kDeadlineExceeded);
  });
  wait_for_line(limiter, 1);
  std::thread small([&] { EXPECT_TRUE(limiter.reserve(RequestContext::background(), 4)); });
  wait_for_line(limiter, 2);
  clock.advance(5s);
  large.join();
  small.join();
  EXPECT_EQ(limiter.in_use(), 6U);
}

TEST(Limiter, CancellationEndsAWait) {
  Limiter limiter("n", Unit::kCount, 1);
  const auto held = limiter.try_reserve(1);
  const RequestContext context(TimePoint::max(), "a");
  std::thread waiter(
      [&] { EXPECT_EQ(limiter.reserve(context, 1).error(), StatusCode::kCancelled); });
  wait_for_line(limiter, 1);
  context.cancellation().request();
  waiter.join();
}

TEST(Limiter, RealDeadlinesEndAWait) {
  Limiter limiter("n", Unit::kCount, 1);
  const auto held = limiter.try_reserve(1);
  const RequestContext context(system_clock().now() + 2ms, "a");
  EXPECT_EQ(limiter.reserve(context, 1).error(), StatusCode::kDeadlineExceeded);
}

TEST(Limiter, HoldsItsCeilingUnderManyThreads) {
  constexpr std::uint64_t kCapacity = 7;
  Limiter limiter("n", Unit::kCount, kCapacity);
  std::atomic<std::uint64_t> held = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 500; ++i) {
        // Some give up after a while, which must leave no trace.
        const RequestContext context(i % 3 == 0 ? system_clock().now() + 50us : TimePoint::max(),
                                     "a");
        const std::uint64_t amount = 1 + (i * 5 + t) % kCapacity;
        const auto mine = limiter.reserve(context, amount);
        if (!mine) continue;
        EXPECT_LE(held.fetch_add(amount) + amount, kCapacity);
        held.fetch_sub(amount);
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(limiter.in_use(), 0U);
}

}  // namespace
}  // namespace millrace
