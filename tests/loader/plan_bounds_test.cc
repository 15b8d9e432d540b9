#include "loader/plan_bounds.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr std::uint64_t kSamples = 40'000;

std::shared_ptr<const LoaderJob> job_of(OrderMode mode = OrderMode::kBlock,
                                        std::uint64_t window_rows = kWindowRows) {
  JobChoice choice;
  choice.sources.push_back({.name = "x@v1"});
  choice.order.mode = mode;
  choice.order.window_rows = window_rows;
  SourceFacts facts{.samples = kSamples, .bytes = kSamples * 1000};
  facts.stretches.push_back({.samples = kSamples, .bytes = kSamples * 1000});
  return LoaderJob::make(std::move(choice), {facts}).value();
}

JobCursor at_position(const std::shared_ptr<const LoaderJob>& job, const RankChoice& choice,
                      std::uint64_t position) {
  LoaderState state = job->first_state();
  state.position = position;
  return JobCursor::resume(job, choice, state).value();
}

// All that a rank takes of the rest of the epoch.
std::vector<PlannedSample> planned_by(JobCursor cursor) {
  const PlanBounds bounds(cursor);
  std::vector<PlannedSample> all;
  while (!cursor.at_end()) {
    const Share share = cursor.take().share;
    for (std::uint64_t n = 0; n < share.count; ++n)
      all.push_back(bounds.at(*cursor.order(), share.at(n)));
  }
  return all;
}

TEST(PlanBoundsTest, OneNodeMayFetchEverything) {
  for (std::uint64_t rank = 0; rank < 8; ++rank) {
    const RankChoice choice{
        .rank = rank, .topology = {.world = 8, .ranks_per_node = 8}, .batch = 16};
    for (const PlannedSample& planned : planned_by(at_position(job_of(), choice, 4000)))
      ASSERT_EQ(planned.last, PlannedSample::kNoBound);
  }
}

TEST(PlanBoundsTest, NodesFetchTheirOwnBlocksAndNoOthers) {
  for (const std::uint64_t nodes : {2, 3, 4, 16}) {
    std::map<std::uint64_t, std::uint64_t> node_of;  // By sample.
    std::uint64_t in_blocks = 0;
    for (std::uint64_t rank = 0; rank < 2 * nodes; ++rank) {
      const RankChoice choice{
          .rank = rank, .topology = {.world = 2 * nodes, .ranks_per_node = 2}, .batch = 7};
      for (const PlannedSample& planned : planned_by(JobCursor::make(job_of(), choice).value())) {
        ASSERT_LE(planned.first, planned.sample);
        ASSERT_GE(planned.last, planned.sample);
        if (planned.last > planned.first) ++in_blocks;
        for (std::uint64_t sample = planned.first; sample <= planned.last; ++sample)
          ASSERT_EQ(node_of.try_emplace(sample, rank / 2).first->second, rank / 2) << sample;
      }
    }
    EXPECT_EQ(node_of.size(), kSamples);
    EXPECT_GT(in_blocks, kSamples * 9 / 10) << "only few samples are in no block";
  }
}

TEST(PlanBoundsTest, WhatWasReadBeforeAResumeIsNotFetchedAgain) {
  const auto job = job_of(OrderMode::kBlock, kWindowRowsMin);
  for (const std::uint64_t position : {1U, 4'800U, 12'345U, 39'000U}) {
    const JobCursor before = JobCursor::make(job, {.batch = 1}).value();
    std::set<std::uint64_t> taken;
    for (std::uint64_t n = 0; n < position; ++n)
      taken.insert(before.order()->at(n).sample);
    for (std::uint64_t rank = 0; rank < 4; ++rank) {
      const RankChoice choice{.rank = rank, .topology = {.world = 4}, .batch = 3};
      for (const PlannedSample& planned : planned_by(at_position(job, choice, position))) {
        for (std::uint64_t sample = planned.first; sample <= planned.last; ++sample)
          ASSERT_FALSE(taken.contains(sample)) << position;
      }
    }
  }
}

TEST(PlanBoundsTest, BlocksAreFetchedFromTheNextWindowOn) {
  // Three windows, of which the job goes on in the middle of the first.
  constexpr std::uint64_t kWindow = kSamples * kWindowRowsMin / kOrderRowsMin;
  const auto job = job_of(OrderMode::kBlock, kWindowRowsMin);
  const RankChoice choice{.rank = 1, .topology = {.world = 4}, .batch = 3};
  const std::vector<PlannedSample> all = planned_by(at_position(job, choice, kWindow / 2));
  const auto in_blocks = std::ranges::count_if(
      all, [](const PlannedSample& planned) { return planned.last > planned.first; });
  EXPECT_GT(in_blocks, (kSamples - kWindow) / 4 * 9 / 10);
  EXPECT_LT(in_blocks, (kSamples - kWindow / 2) / 4) << "not before";

  JobCursor cursor = at_position(job, choice, kWindow / 2);
  const PlanBounds bounds(cursor);
  while (!cursor.at_end())
    cursor.take();
  ASSERT_TRUE(cursor.begin_next_epoch().ok());
  const PlannedSample first = bounds.at(*cursor.order(), 0);
  EXPECT_GT(first.last, first.first) << "the next epoch begins with a window";
}

TEST(PlanBoundsTest, NodesThatShareBlocksFetchSamplesAlone) {
  const RankChoice five{.rank = 3, .topology = {.world = 5}, .batch = 3};
  for (const PlannedSample& planned : planned_by(JobCursor::make(job_of(), five).value()))
    ASSERT_EQ(planned.first, planned.last);
  const RankChoice two{.rank = 1, .topology = {.world = 2}, .batch = 3};
  for (const OrderMode mode : {OrderMode::kNone, OrderMode::kFull}) {
    for (const PlannedSample& planned : planned_by(JobCursor::make(job_of(mode), two).value())) {
      ASSERT_EQ(planned.first, planned.sample);
      ASSERT_EQ(planned.last, planned.sample);
    }
  }
}

TEST(PlanBoundsTest, RanksThatSeeTheSameSamplesAllFetchThem) {
  const RankChoice choice{
      .rank = 3, .topology = {.world = 4, .ranks_per_node = 1, .replication = 4}, .batch = 3};
  EXPECT_EQ(planned_by(JobCursor::make(job_of(), choice).value())[0].last, PlannedSample::kNoBound);
}

}  // namespace
}  // namespace millrace
