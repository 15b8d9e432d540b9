#include "frontends/loader/losses_of_jobs.h"

#include <string>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::vector<SampleLoss> one_loss(std::uint64_t position) {
  return {{.failure = {.place = {.position = position}}, .action = FaultAction::kSkip}};
}

TEST(LossesOfJobsTest, KeepsThemApartByJob) {
  LossesOfJobs losses;
  losses.add("a", one_loss(1));
  losses.add("b", one_loss(2));
  losses.add("a", one_loss(3));
  losses.add("", one_loss(4));
  EXPECT_EQ(losses.of("a").size(), 2u);
  ASSERT_EQ(losses.of("b").size(), 1u);
  EXPECT_EQ(losses.of("b")[0].position, 2u);
  EXPECT_TRUE(losses.of("c").empty());
  EXPECT_TRUE(losses.of("").empty()) << "nobody could ask for them";
}

TEST(LossesOfJobsTest, ForgetsTheJobThatLostNothingForTheLongestTime) {
  LossesOfJobs losses;
  for (std::size_t job = 0; job < LossesOfJobs::kJobsMax; ++job)
    losses.add(std::to_string(job), one_loss(1));
  losses.add("0", one_loss(2));
  losses.add("new", one_loss(1));
  EXPECT_EQ(losses.of("0").size(), 2u);
  EXPECT_TRUE(losses.of("1").empty());
  EXPECT_EQ(losses.of("2").size(), 1u);
  EXPECT_EQ(losses.of("new").size(), 1u);
}

}  // namespace
}  // namespace millrace
