#include "service/preload_pace.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/manual_clock.h"

namespace millrace {
namespace {

using std::chrono::seconds;

TEST(PreloadPaceTest, IsNoFasterThanAskedFor) {
  ManualClock clock;
  const TimePoint start = clock.now();
  PreloadPace pace(clock, 100);
  for (int n = 0; n <= 10; ++n)
    pace.take(50, Cancellation());
  EXPECT_EQ(clock.now() - start, seconds(5)) << "the first goes at once, the others wait in turn";
}

TEST(PreloadPaceTest, AnOutageIsNotCaughtUpWith) {
  ManualClock clock;
  PreloadPace pace(clock, 100);
  pace.take(100, Cancellation());
  clock.advance(std::chrono::hours(1));
  const TimePoint back = clock.now();
  for (int n = 0; n <= 10; ++n)
    pace.take(100, Cancellation());
  EXPECT_EQ(clock.now() - back, seconds(9)) << "a second's worth may be sent at once";
}

TEST(PreloadPaceTest, WithoutARateNobodyWaits) {
  ManualClock clock;
  const TimePoint start = clock.now();
  PreloadPace pace(clock, 0);
  for (int n = 0; n < 10; ++n)
    pace.take(kGiB, Cancellation());
  EXPECT_EQ(clock.now(), start);
}

}  // namespace
}  // namespace millrace
