#include "cli/progress.h"

#include <string>

#include <gmock/gmock.h>

#include "base/manual_clock.h"
#include "base/units.h"

namespace millrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

TEST(Progress, TellsTheRateOfWhatWasAdded) {
  ManualClock clock;
  CaptureStderr();
  Progress progress(true, clock, "copying");
  progress.add_total(100 * kMiB);
  clock.advance(std::chrono::seconds(2));
  progress.add_bytes(20 * kMiB);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr(" 20%"
                                             " 20 MiB of 100 MiB, 10 MiB/s, 8s left"));
}

// What was there before it began says nothing about how long the rest takes.
TEST(Progress, ShowsWhatItIsToldInPlaceOfThat) {
  ManualClock clock;
  CaptureStderr();
  Progress progress(true, clock, "pets@v1");
  progress.add_total(100 * kMiB);
  clock.advance(std::chrono::seconds(1));
  progress.show({.done_bytes = 90 * kMiB});
  clock.advance(std::chrono::seconds(1));
  progress.show(
      {.done_bytes = 91 * kMiB, .bytes_per_second = kMiB, .time_left = std::chrono::seconds(9)});
  const std::string drawn = GetCapturedStderr();
  EXPECT_THAT(drawn, HasSubstr("90 MiB of 100 MiB\x1b[K")) << "nobody knows yet";
  EXPECT_THAT(drawn, HasSubstr("91 MiB of 100 MiB, 1 MiB/s, 9s left"));
}

TEST(Progress, OneThatIsOffDrawsNothing) {
  ManualClock clock;
  CaptureStderr();
  Progress progress(false, clock, "copying");
  clock.advance(std::chrono::seconds(1));
  progress.add_bytes(kMiB);
  progress.show({.done_bytes = kMiB});
  EXPECT_EQ(GetCapturedStderr(), "");
}

TEST(Progress, HasNoEndOfTimes) {
  ManualClock clock;
  CaptureStderr();
  Progress progress(true, clock, "copying");
  progress.add_total(UINT64_MAX);
  clock.advance(std::chrono::seconds(1));
  progress.add_bytes(2);
  EXPECT_THAT(GetCapturedStderr(), Not(HasSubstr("-")));
}

}  // namespace
}  // namespace millrace::cli
