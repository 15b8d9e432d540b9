// Jobs over several datasets, resumed as other jobs.

#include "loader/job_order.h"

#include <algorithm>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loader/job_world.h"

namespace millrace {
namespace {

Topology random_topology(std::mt19937_64& random) {
  const std::uint64_t replication = 1 + random() % 2;
  const std::uint64_t per_node = replication * (1 + random() % 4);
  return {.world = per_node * (1 + random() % 4),
          .ranks_per_node = per_node,
          .replication = replication};
}

// What one rank alone would deliver: the truth that all others are held against.
DeliveryDigest expected_digest(const JobEpoch& order) {
  DeliveryDigest digest;
  for (std::uint64_t p = 0; p < order.samples(); ++p) {
    const JobOrder::Place place = order.at(p);
    digest.add(order.epoch(), p, place.source, place.sample);
  }
  return digest;
}

TEST(JobOrderTest, EveryChainOfTopologiesDeliversTheSame) {
  std::mt19937_64 random(5);
  const std::vector<JobSource> sources = {job_source(5003, 1), job_source(801, 2)};
  for (int round = 0; round < 40; ++round) {
    const JobOrderOptions options{.mode = OrderMode(random() % 3), .seed = random()};
    const std::vector<MixPhase> phases = {first_phase(weights_of({3, 1}))};
    const std::uint64_t epoch = random() % 4;
    const JobEpoch order = JobEpoch::make(options, sources, phases, epoch).value();
    DeliveryDigest delivered;
    for (std::uint64_t position = 0; position < order.samples();) {
      const Topology topology = random_topology(random);
      const Dealing dealing = Dealing::make({.samples = order.samples(),
                                             .start = position,
                                             .topology = topology,
                                             .batch = 1 + random() % 40,
                                             .last = LastSteps::kEven})
                                  .value();
      const std::uint64_t steps = 1 + random() % dealing.steps();
      position = deliver(order, dealing, topology, steps, delivered);
    }
    ASSERT_EQ(delivered, expected_digest(order)) << "round " << round;
    ASSERT_EQ(delivered.samples(), order.samples());
  }
}

TEST(JobOrderTest, ADatasetGoesOnWhereTheEpochBeforeStopped) {
  const std::vector<JobSource> sources = {job_source(1000, 1), job_source(333, 2)};
  const std::vector<MixShare> shares = {{.kind = ShareKind::kChoose, .amount = 250},
                                        {.kind = ShareKind::kChoose, .amount = 999}};
  std::map<std::pair<std::size_t, std::uint64_t>, int> seen;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    const JobEpoch order =
        JobEpoch::make({.seed = 1}, sources, {first_phase(shares)}, epoch).value();
    for (std::uint64_t p = 0; p < order.samples(); ++p) {
      const JobOrder::Place place = order.at(p);
      ++seen[{place.source, place.sample}];
    }
  }
  EXPECT_EQ(seen.size(), 1333U);
  for (const auto& [what, times] : seen)
    EXPECT_EQ(times, what.first == 0 ? 1 : 12);
}

TEST(JobOrderTest, WeightsChangeInsideAnEpochWithoutGapOrRepetition) {
  const std::vector<JobSource> sources = {job_source(20'011, 1), job_source(10'007, 2)};
  const JobOrderOptions options{.seed = 9};
  std::vector<MixPhase> phases = {first_phase(weights_of({2, 1}))};
  // A change in the second epoch, and another one behind it.
  for (const std::uint64_t position : {std::uint64_t{7001}, std::uint64_t{20'500}}) {
    const JobEpoch before = JobEpoch::make(options, sources, phases, 1).value();
    const MixPhase phase = before.order(position).change(position, weights_of({1, 5}));
    EXPECT_GE(phase.position, position);
    EXPECT_LT(phase.position, position + 16 * kOrderLanes);
    phases.push_back(phase);
    const JobEpoch after = JobEpoch::make(options, sources, phases, 1).value();
    ASSERT_EQ(after.samples(), before.samples());
    for (std::uint64_t p = 0; p < phase.position; ++p)
      ASSERT_EQ(after.at(p), before.at(p));
  }
  std::map<std::pair<std::size_t, std::uint64_t>, int> seen;
  std::vector<std::uint64_t> taken(2);
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    const JobEpoch order = JobEpoch::make(options, sources, phases, epoch).value();
    for (std::uint64_t p = 0; p < order.samples(); ++p) {
      const JobOrder::Place place = order.at(p);
      ++seen[{place.source, place.sample}];
      ++taken[place.source];
    }
  }
  // However often the shares changed, every pass over a dataset was whole before the next began.
  for (const auto& [what, times] : seen) {
    const std::uint64_t passes = taken[what.first] / sources[what.first].layout->samples();
    EXPECT_GE(times, static_cast<int>(passes));
    EXPECT_LE(times, static_cast<int>(passes) + 1);
  }
}

TEST(JobOrderTest, RepeatAndChooseChangeAtTheEndOfTheEpoch) {
  const std::vector<JobSource> sources = {job_source(100, 1), job_source(50, 2)};
  const std::vector<MixShare> once = {{.kind = ShareKind::kRepeat, .amount = 1},
                                      {.kind = ShareKind::kRepeat, .amount = 1}};
  const JobOrder order = JobOrder::make({}, sources, first_phase(once), 0).value();
  const MixPhase phase = order.change(10, weights_of({1, 1}));
  EXPECT_EQ(phase.epoch, 1U);
  EXPECT_EQ(phase.position, 0U);
  EXPECT_EQ(phase.taken, (std::vector<std::uint64_t>{100, 50}));
  MixPhase wrong = phase;
  wrong.position = 5;
  wrong.shares = once;
  EXPECT_EQ(JobOrder::make({}, sources, wrong, 1).error().code(), StatusCode::kInvalidArgument);
}

TEST(JobOrderTest, ASampleHasRandomNumbersOfItsOwn) {
  const std::vector<JobSource> sources = {job_source(100, 1)};
  const auto seeds = [&](std::uint64_t seed, std::uint64_t epoch) {
    const auto order =
        JobOrder::make({.seed = seed}, sources, first_phase({MixShare{}}), epoch).value();
    std::vector<std::uint64_t> all;
    for (std::uint64_t p = 0; p < order.samples(); ++p)
      all.push_back(order.seed_at(p));
    return all;
  };
  EXPECT_EQ(seeds(1, 0), seeds(1, 0));
  EXPECT_NE(seeds(1, 0), seeds(1, 1));
  EXPECT_NE(seeds(1, 0), seeds(2, 0));
  std::vector<std::uint64_t> all = seeds(1, 0);
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
}

TEST(SampleSplitTest, PartsCoverAllSamplesOnceAndEveryStretchAlike) {
  const OrderSeed seed{.content_digest = {std::byte{3}}, .seed = 0};
  for (const std::uint64_t samples : {1, 7, 99, 100, 101, 12'345}) {
    std::vector<int> seen(samples);
    std::uint64_t total = 0;
    for (const auto* text : {"0-80/100", "80-90/100", "90-100/100"}) {
      const SampleSplit part(SplitRule::parse(text).value(), seed, samples);
      total += part.size();
      for (std::uint64_t n = 0; n < part.size(); ++n) {
        ++seen.at(part.sample(n));
        if (n > 0) {
          ASSERT_LT(part.sample(n - 1) / 100, part.sample(n) / 100 + 1);
        }
      }
      const auto stretches = part.stretches(
          {{.samples = samples / 2, .bytes = samples}, {.samples = samples - samples / 2}});
      std::uint64_t in_stretches = 0;
      for (const SampleStretch& stretch : stretches)
        in_stretches += stretch.samples;
      EXPECT_EQ(in_stretches, part.size());
    }
    EXPECT_EQ(total, samples);
    EXPECT_EQ(std::ranges::count(seen, 1), static_cast<std::ptrdiff_t>(samples));
  }
}

TEST(SampleSplitTest, IsTakenByAJob) {
  const SampleSplit part(SplitRule::parse("0-1/4").value(), {}, 1000);
  JobSource source = job_source(part.size(), 1);
  source.split = part;
  const JobEpoch order = JobEpoch::make({}, {source}, {first_phase({MixShare{}})}, 0).value();
  std::vector<std::uint64_t> taken;
  std::vector<std::uint64_t> wanted;
  for (std::uint64_t p = 0; p < order.samples(); ++p)
    taken.push_back(order.at(p).sample);
  for (std::uint64_t n = 0; n < part.size(); ++n)
    wanted.push_back(part.sample(n));
  EXPECT_THAT(taken, ::testing::UnorderedElementsAreArray(wanted));
}

TEST(SplitRuleTest, RefusesWhatIsNoPart) {
  for (const auto* text : {"", "90", "0-90", "90-10/100", "0-0/100", "0-101/100", "0-1/0",
                           "0-1/20000", "0-90/100x", "-1-2/3", "train"}) {
    EXPECT_EQ(SplitRule::parse(text).error().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(SplitRule::parse("5-90/100").value().text(), "5-90/100");
}

TEST(DeliveryDigestTest, TellsWhatIsMissingDoubledOrMisplaced) {
  const auto digest = [](std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> samples) {
    DeliveryDigest all;
    for (const auto& [position, sample] : samples)
      all.add(0, position, 0, sample);
    return all;
  };
  const DeliveryDigest good = digest({{0, 7}, {1, 9}, {2, 8}});
  EXPECT_EQ(digest({{2, 8}, {0, 7}, {1, 9}}), good);
  EXPECT_NE(digest({{0, 7}, {1, 9}}).text(), good.text());
  EXPECT_NE(digest({{0, 7}, {1, 9}, {2, 8}, {2, 8}}).text(), good.text());
  EXPECT_NE(digest({{0, 9}, {1, 7}, {2, 8}}).text(), good.text());
  EXPECT_EQ(DeliveryDigest::parse(good.text()).value(), good);
  for (const auto* text :
       {"", "00", "0123456789abcdef0123456789abcdef:", "0123456789abcdef0123456789abcdef:-1",
        "x123456789abcdef0123456789abcdef:1"}) {
    EXPECT_FALSE(DeliveryDigest::parse(text)) << text;
  }
}

}  // namespace
}  // namespace millrace
