#include "service/preload_progress.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace millrace {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class PreloadProgressTest : public ::testing::Test {
 protected:
  PreloadProgressTest() { progress_.restart(now_, 100'000 * kMiB); }

  // So much comes every second, for so long.
  void fetch(std::uint64_t bytes_per_second, seconds time) {
    for (seconds passed{0}; passed < time; ++passed) {
      now_ += seconds(1);
      progress_.add(now_, bytes_per_second, true);
    }
  }
  PreloadInfo described() const {
    PreloadInfo preload{.request = {.version = VersionRef::parse("a@v1").value()}};
    progress_.describe(now_, preload);
    return preload;
  }
  static std::uint64_t seconds_left(const PreloadInfo& preload) {
    return static_cast<std::uint64_t>(
        std::chrono::ceil<seconds>(preload.time_left.value_or(Duration::zero())).count());
  }

  TimePoint now_ = TimePoint(hours(1));
  PreloadProgress progress_;
};

TEST_F(PreloadProgressTest, TheRateIsOfLate) {
  EXPECT_FALSE(described().time_left);
  progress_.add(now_, 1000 * kMiB, false);
  EXPECT_FALSE(described().time_left) << "what was there says nothing";
  fetch(100 * kMiB, minutes(2));
  EXPECT_EQ(described().bytes_per_second, 100 * kMiB);
  EXPECT_EQ(seconds_left(described()), 100'000 / 100 - 10 - 120);
  fetch(10 * kMiB, minutes(1));
  EXPECT_EQ(described().bytes_per_second, 10 * kMiB);
  EXPECT_EQ(described().bytes_done, (1000 + 12000 + 600) * kMiB);
}

TEST_F(PreloadProgressTest, AnOutageIsSoonForgotten) {
  fetch(100 * kMiB, minutes(2));
  progress_.set_problem(now_, "the store is away");
  now_ += hours(8);
  EXPECT_FALSE(described().time_left) << "nobody knows when the store comes back";
  EXPECT_EQ(described().bytes_per_second, 0u);
  progress_.set_problem(now_, "");
  fetch(50 * kMiB, seconds(10));
  EXPECT_EQ(described().bytes_per_second, 50 * kMiB);
}

TEST_F(PreloadProgressTest, IsStuckWhileThereIsAProblemAndNothingComes) {
  fetch(100 * kMiB, seconds(1));
  now_ += hours(1);
  EXPECT_EQ(progress_.stuck(now_), Duration::zero()) << "one that may fetch little is not";
  progress_.set_problem(now_, "the store is away");
  now_ += minutes(1);
  progress_.set_problem(now_, "it is still away");
  EXPECT_EQ(progress_.stuck(now_), minutes(1));
  progress_.add(now_, kMiB, true);
  now_ += seconds(1);
  EXPECT_EQ(progress_.stuck(now_), seconds(1));
  progress_.set_problem(now_, "");
  EXPECT_EQ(progress_.stuck(now_), Duration::zero());
}

TEST_F(PreloadProgressTest, WhatComesSlowlyHasARateToo) {
  for (int n = 0; n < 100; ++n) {
    now_ += minutes(1);
    progress_.add(now_, 6 * kMiB, true);
  }
  EXPECT_EQ(described().bytes_per_second, 6 * kMiB / 60);
}

TEST_F(PreloadProgressTest, NothingTakesLongerThanAYear) {
  progress_.restart(now_, std::uint64_t{1} << 62);
  now_ += hours(100);
  progress_.add(now_, 1, true);
  now_ += hours(100);
  progress_.add(now_, 1, true);
  EXPECT_EQ(described().time_left, Duration(std::chrono::days(365)));
}

}  // namespace
}  // namespace millrace
