// Ranks that go on from a state with other shares than the job had that saved it.

#include "loader/job_cursor.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "loader/step_digests.h"
#include "platform/process.h"
#include "tests/loader/job_world.h"

namespace millrace {
namespace {

constexpr std::uint64_t kEpochSamples = 20'000;

std::vector<MixShare> chosen(std::initializer_list<double> amounts) {
  std::vector<MixShare> shares;
  for (const double amount : amounts)
    shares.push_back({.kind = ShareKind::kChoose, .amount = amount});
  return shares;
}

// Over one dataset of so many samples for each share.
std::shared_ptr<const LoaderJob> job_of(
    const std::vector<MixShare>& shares,
    const JobOrderOptions& order = {.epoch_samples = kEpochSamples}, std::uint64_t samples = 5003) {
  JobChoice choice;
  choice.order = order;
  std::vector<SourceFacts> facts;
  for (const MixShare& share : shares) {
    choice.sources.push_back({.name = "x@v1", .share = share});
    facts.push_back({.content_digest = {std::byte(facts.size() + 1)},
                     .reader = "files",
                     .samples = samples,
                     .stretches = {{.samples = samples, .bytes = samples * 4}}});
  }
  return LoaderJob::make(std::move(choice), facts).value();
}

struct Delivered {
  DeliveryDigest digest = {};
  std::vector<std::uint64_t> samples = {0, 0};  // Of each dataset.

  double of_second() const {
    return static_cast<double>(samples[1]) / static_cast<double>(samples[0] + samples[1]);
  }
};

// What all ranks take from a state to the end of its epoch, and then of the next one.
std::pair<Delivered, Delivered> deliver_two_epochs(const std::vector<MixShare>& shares,
                                                   const LoaderState& state, std::uint64_t world) {
  std::pair<Delivered, Delivered> epochs;
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    const RankChoice choice{
        .rank = rank, .topology = {.world = world, .ranks_per_node = world}, .batch = 50};
    JobCursor cursor = JobCursor::resume(job_of(shares), choice, state).value();
    for (Delivered* epoch : {&epochs.first, &epochs.second}) {
      while (!cursor.at_end()) {
        for (const PlacedSample& place : places_of(*cursor.order(), cursor.take().share)) {
          epoch->digest.add(cursor.epoch(), place.position, place.source, place.sample);
          ++epoch->samples[place.source];
        }
      }
      EXPECT_TRUE(cursor.begin_next_epoch().ok());
    }
  }
  return epochs;
}

LoaderState state_after(const std::vector<MixShare>& shares, std::uint64_t steps) {
  return JobCursor::make(job_of(shares), {.batch = 50}).value().state(steps);
}

TEST(JobCursorTest, OtherWeightsHoldFromTheStateOnForEveryTopology) {
  const LoaderState state = state_after(weights_of({1, 1}), 80);
  ASSERT_EQ(state.position, 4000u);
  const auto [rest, next] = deliver_two_epochs(weights_of({1, 9}), state, 1);
  EXPECT_EQ(rest.digest.samples(), kEpochSamples - 4000);
  EXPECT_NEAR(rest.of_second(), 0.9, 0.02);
  EXPECT_NEAR(next.of_second(), 0.9, 0.001);
  const auto [rest_of_seven, next_of_seven] = deliver_two_epochs(weights_of({1, 9}), state, 7);
  EXPECT_EQ(rest_of_seven.digest, rest.digest);
  EXPECT_EQ(next_of_seven.digest, next.digest);
}

TEST(JobCursorTest, OtherWeightsAreThoseThatARunningJobWouldChangeTo) {
  JobCursor running = JobCursor::resume(job_of(weights_of({1, 1})), {.batch = 50},
                                        state_after(weights_of({1, 1}), 80))
                          .value();
  ASSERT_TRUE(running.change_shares(weights_of({1, 9})).ok());
  const JobCursor resumed = JobCursor::resume(job_of(weights_of({1, 9})), {.batch = 50},
                                              state_after(weights_of({1, 1}), 80))
                                .value();
  EXPECT_EQ(resumed.state(3).phases, running.state(3).phases);
  // Saved once more, it is a state of the weights that hold now.
  const LoaderState again = resumed.state(3);
  EXPECT_EQ(JobCursor::resume(job_of(weights_of({1, 9})), {.batch = 50}, again)->state(0), again);
}

TEST(JobCursorTest, AStateThatAgreesChangesNothing) {
  const LoaderState state = state_after(weights_of({1, 1}), 80);
  const RankChoice choice{.batch = 50};
  EXPECT_EQ(JobCursor::resume(job_of(weights_of({1, 1})), choice, state)->state(0), state);
  // What was changed in the run goes on to hold for who opens the job as before, and for who opens
  // it with what was changed to.
  JobCursor changed = JobCursor::resume(job_of(weights_of({1, 1})), choice, state).value();
  ASSERT_TRUE(changed.change_shares(weights_of({1, 9})).ok());
  const std::vector<MixPhase> phases = changed.state(2).phases;
  for (const auto& shares : {weights_of({1, 1}), weights_of({1, 9})}) {
    EXPECT_EQ(JobCursor::resume(job_of(shares), choice, changed.state(2))->state(0).phases, phases);
  }
  // A state of old does not say what the job was opened with.
  LoaderState old = state;
  old.shares.clear();
  EXPECT_EQ(JobCursor::resume(job_of(weights_of({1, 9})), choice, old)->state(0).phases,
            state.phases);
}

TEST(JobCursorTest, OtherNumbersOfSamplesHoldFromTheNextEpochThatBegins) {
  const LoaderState inside = state_after(chosen({1000, 1000}), 10);
  const auto [rest, next] = deliver_two_epochs(chosen({500, 2500}), inside, 1);
  EXPECT_EQ(rest.digest.samples(), 1500u);
  EXPECT_EQ(next.samples, (std::vector<std::uint64_t>{500, 2500}));
  const LoaderState at_end = state_after(chosen({1000, 1000}), 40);
  ASSERT_EQ(at_end.epoch, 1u);
  EXPECT_EQ(deliver_two_epochs(chosen({500, 2500}), at_end, 1).first.samples,
            (std::vector<std::uint64_t>{500, 2500}));
}

TEST(JobCursorTest, AnEpochThatHasNotBegunTakesTheSizeOfItsNewShares) {
  JobCursor cursor = JobCursor::make(job_of(chosen({1000, 1000})), {.batch = 50}).value();
  ASSERT_TRUE(cursor.change_shares(chosen({500, 2500})).ok());
  EXPECT_EQ(cursor.steps(), 60u);
  EXPECT_EQ(cursor.order()->samples(), 3000u);
  // What cannot be dealt leaves the job as it was.
  EXPECT_FALSE(cursor.change_shares(chosen({0, 0})).ok());
  EXPECT_EQ(cursor.steps(), 60u);
}

// A bit for each of them would be a GiB.
TEST(JobCursorTest, TenBillionSamplesTakeNoMemory) {
  constexpr std::uint64_t kSamples = 10'000'000'000;
  constexpr std::uint64_t kGrowthMax = 8 * kMiB;
  for (const OrderMode mode : {OrderMode::kBlock, OrderMode::kFull}) {
    const std::uint64_t before = resident_bytes();
    std::uint64_t peak = before;
    const auto job = job_of(weights_of({1, 1}), {.mode = mode}, kSamples / 2);
    ASSERT_EQ(job->samples(), kSamples);
    LoaderState state = job->first_state();
    std::mt19937_64 random(3);
    std::uint64_t in_first_half = 0;
    for (int resume = 0; resume < 100; ++resume) {
      state.epoch = random() % 50;
      state.position = random() % kSamples;
      const RankChoice choice{
          .rank = 3, .topology = {.world = 16, .ranks_per_node = 8}, .batch = 256};
      JobCursor cursor = JobCursor::resume(job, choice, state).value();
      for (std::uint64_t n = 0; n < 10'000; ++n) {
        const JobOrder::Place place = cursor.order()->at(random() % kSamples);
        ASSERT_LT(place.sample, kSamples / 2);
        in_first_half += place.sample < kSamples / 4 ? 1 : 0;
      }
      peak = std::max(peak, resident_bytes());
    }
    EXPECT_NEAR(static_cast<double>(in_first_half), 500'000, 5000);
    EXPECT_LT(peak - before, kGrowthMax) << order_mode_name(mode);
  }
}

// What is kept ends somewhere; the digests do not.
TEST(StepDigestsTest, TellsEveryStepHoweverManyWereTaken) {
  JobCursor cursor = JobCursor::make(job_of(weights_of({1, 1})), {.batch = 2}).value();
  DeliveryDigest before;
  before.add(7, 7, 7, 7);
  StepDigests digests(before);
  std::vector<DeliveryDigest> expected = {before};
  while (!cursor.at_end()) {
    const CursorStep step = cursor.take();
    const std::vector<PlacedSample> places = places_of(*cursor.order(), step.share);
    if (step.number < 9000) digests.take(step.epoch, places);
    DeliveryDigest& next = expected.emplace_back(expected.back());
    for (const PlacedSample& place : places)
      next.add(step.epoch, place.position, place.source, place.sample);
  }
  JobCursor asked = JobCursor::make(job_of(weights_of({1, 1})), {.batch = 2}).value();
  for (int step = 0; step < 9000; ++step)
    asked.take();
  EXPECT_EQ(digests.last(), expected[9000]);
  for (const std::uint64_t step : {0, 1, 4903, 4904, 4905, 8999, 9000, 9001, 10'000})
    EXPECT_EQ(digests.behind(asked, step), expected[step]) << "behind step " << step;
}

}  // namespace
}  // namespace millrace
