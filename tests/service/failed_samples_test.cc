#include "service/failed_samples.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "base/manual_clock.h"
#include "base/manual_executor.h"
#include "base/units.h"
#include "platform/memory_disk.h"
#include "platform/small_file.h"

namespace millrace {
namespace {

// Samples that failed, on a disk of their own, whose time is the test's.
class FailedSamplesTest : public ::testing::Test {
 protected:
  FailedSamplesTest() { EXPECT_TRUE(disk_.make_directories("/state").ok()); }
  std::unique_ptr<FailedSamples> open(FailedSamplesOptions options = {}) {
    return FailedSamples::open(
               {.disk = disk_, .clock = clock_, .work = work_, .path = "/state/failed"}, options)
        .value();
  }
  static FailedSample failed(const std::string& run, std::uint64_t sample) {
    return {.run = run,
            .dataset = "a@v1",
            .sample = sample,
            .key = "cat/" + std::to_string(sample),
            .action = "skip",
            .error = "corruption: bad"};
  }

  MemoryDisk disk_;
  ManualClock clock_;
  ManualExecutor work_;
};

TEST_F(FailedSamplesTest, CountsByRunAndSample) {
  const auto samples = open();
  samples->add(failed("r1", 7));
  samples->add(failed("r1", 3));
  clock_.advance(std::chrono::seconds(1));
  FailedSample again = failed("r1", 7);
  again.action = "raise";
  samples->add(again);
  samples->add(failed("r2", 7));
  samples->add(failed("", 7));
  const std::vector<FailedSample> rows = samples->of_run("r1");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].sample, 3u);
  again.times = 2;
  again.last = clock_.wall_now();
  EXPECT_EQ(rows[1], again);
  EXPECT_EQ(samples->of_run("r2").size(), 1u);
  EXPECT_TRUE(samples->of_run("").empty()) << "who is part of no run has no record";
}

TEST_F(FailedSamplesTest, IsKeptOverRestartsAndAKillLosesOnePeriod) {
  auto samples = open();
  samples->add(failed("r1", 1));
  clock_.advance(std::chrono::seconds(5));
  work_.run_all();
  samples->add(failed("r1", 2));
  const std::string text = read_small_file(disk_, "/state/failed", kMiB).value();
  EXPECT_EQ(decode_failed_samples(text, "failed").value().size(), 1u) << "what a kill leaves";
  samples.reset();
  samples = open();
  samples->add(failed("r1", 2));
  ASSERT_EQ(samples->of_run("r1").size(), 2u);
  EXPECT_EQ(samples->of_run("r1")[1].times, 2u);
}

TEST_F(FailedSamplesTest, WhatARunHasNoRoomForIsCounted) {
  const auto samples = open({.listed_max = 2, .rows_max = 5});
  for (std::uint64_t sample = 0; sample < 10; ++sample)
    samples->add(failed("r1", sample));
  std::vector<FailedSample> rows = samples->of_run("r1");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].dataset, kOtherFailures);
  EXPECT_EQ(rows[0].times, 8u);
  clock_.advance(std::chrono::seconds(1));
  samples->add(failed("r2", 0));
  samples->add(failed("r2", 1));
  samples->add(failed("r3", 0));
  EXPECT_EQ(samples->of_run("r1").size(), 2u) << "what failed longest ago is forgotten";
  EXPECT_EQ(samples->of_run("r2").size(), 2u);
}

TEST_F(FailedSamplesTest, TakesAnyBytes) {
  const LogCapture quiet;
  const std::string text = encode_failed_samples({failed("r1", 1), failed("r1", 2)});
  const std::string damaged = text.substr(0, text.size() - 3) + "x}\n";
  EXPECT_EQ(decode_failed_samples(damaged, "f").value().size(), 1u);
  EXPECT_EQ(decode_failed_samples("something else", "f").error().code(), StatusCode::kCorruption);
}

}  // namespace
}  // namespace millrace
