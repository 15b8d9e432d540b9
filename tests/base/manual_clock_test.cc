#include "base/manual_clock.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/cancellation.h"
#include "base/manual_executor.h"
#include "base/time_format.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

TEST(ManualClock, MovesOnlyWhenTold) {
  ManualClock clock;
  const TimePoint start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(5s);
  EXPECT_EQ(clock.now(), start + 5s);
  clock.advance_to(start);
  EXPECT_EQ(clock.now(), start + 5s) << "never back";
}

TEST(ManualClock, WallTimeFollowsAndCanBeWrong) {
  ManualClock clock;
  EXPECT_EQ(format_iso8601(clock.wall_now()), "2026-01-01T00:00:00.000Z");
  clock.advance(1500ms);
  EXPECT_EQ(format_iso8601(clock.wall_now()), "2026-01-01T00:00:01.500Z");
  clock.set_wall_offset(-1h);
  EXPECT_EQ(format_iso8601(clock.wall_now()), "2025-12-31T23:00:01.500Z");
}

TEST(ManualClock, FiresInOrderOfTimeThenOfArming) {
  ManualClock clock;
  const TimePoint start = clock.now();
  std::vector<std::pair<int, Duration>> fired;
  const auto arm = [&](int id, Duration after) {
    return clock.schedule(start + after, inline_executor(),
                          [&, id] { fired.emplace_back(id, clock.now() - start); });
  };
  const auto a = arm(1, 3s);
  const auto b = arm(2, 1s);
  const auto c = arm(3, 3s);
  const auto d = arm(4, 9s);
  EXPECT_EQ(clock.armed_timers(), 4U);
  clock.advance(4s);
  EXPECT_EQ(fired, (std::vector<std::pair<int, Duration>>{{2, 1s}, {1, 3s}, {3, 3s}}));
  EXPECT_EQ(clock.now(), start + 4s);
  EXPECT_TRUE(clock.advance_to_next_timer());
  EXPECT_EQ(clock.now(), start + 9s);
  EXPECT_FALSE(clock.advance_to_next_timer());
}

TEST(ManualClock, ATaskMayArmTheNextTimer) {
  ManualClock clock;
  int fired = 0;
  std::unique_ptr<Clock::Timer> timer;
  std::function<void()> again = [&] {
    ++fired;
    timer = clock.schedule(clock.now() + 1s, inline_executor(), again);
  };
  again();
  clock.advance(10s);
  EXPECT_EQ(fired, 11);
}

TEST(ManualClock, DestroyingATimerDisarmsItAndFreesItsTask) {
  ManualClock clock;
  const auto resource = std::make_shared<int>(1);
  auto timer = clock.schedule(clock.now() + 1s, inline_executor(),
                              [resource] { FAIL() << "a cancelled timer fired"; });
  EXPECT_EQ(resource.use_count(), 2);
  timer.reset();
  EXPECT_EQ(resource.use_count(), 1);
  EXPECT_EQ(clock.armed_timers(), 0U);
  clock.advance(2s);
}

TEST(ManualClock, ATimerMayOutliveItsClock) {
  std::unique_ptr<Clock::Timer> timer;
  {
    ManualClock clock;
    timer = clock.schedule(clock.now() + 1s, inline_executor(), [] { FAIL(); });
  }
}

TEST(ManualClock, HandsOverToTheExecutor) {
  ManualClock clock;
  ManualExecutor executor;
  bool ran = false;
  const auto timer = clock.schedule(clock.now(), executor, [&] { ran = true; });
  EXPECT_EQ(executor.pending(), 0U) << "time has not moved";
  clock.advance(0s);
  EXPECT_EQ(executor.pending(), 1U);
  EXPECT_FALSE(ran);
  executor.run_all();
  EXPECT_TRUE(ran);
}

TEST(ManualClock, ASleeperMakesTimePass) {
  ManualClock clock;
  const TimePoint start = clock.now();
  int fired = 0;
  const auto timer = clock.schedule(start + 1s, inline_executor(), [&] { ++fired; });
  EXPECT_TRUE(clock.sleep_until(start + 10s, nullptr));
  EXPECT_EQ(clock.now(), start + 10s);
  EXPECT_EQ(fired, 1);
  EXPECT_TRUE(clock.sleep_until(start, nullptr)) << "already past";
}

TEST(ManualClock, CancellationEndsASleepWhereItHappened) {
  ManualClock clock;
  Cancellation cancel;
  const TimePoint start = clock.now();
  const auto timer = clock.schedule(start + 2s, inline_executor(), [&] { cancel.request(); });
  EXPECT_FALSE(clock.sleep_until(TimePoint::max(), &cancel));
  EXPECT_EQ(clock.now(), start + 2s);
  EXPECT_FALSE(clock.sleep_until(start + 9s, &cancel)) << "already cancelled";
}

}  // namespace
}  // namespace millrace
