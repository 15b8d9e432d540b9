// What a rank plans before it reads, in a job over ten billion samples: going on from a state to
// the samples of the next step, and the memory that all of it takes.

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_store.h"
#include "bench/client_usage.h"
#include "loader/job_cursor.h"
#include "platform/process.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kShards = 100'000;
constexpr std::uint64_t kShardSamples = 100'000;
constexpr std::uint64_t kSamples = kShards * kShardSamples;
constexpr std::uint64_t kSampleBytes = 4 * kKiB;
constexpr std::uint64_t kBatch = 256;
constexpr std::uint64_t kWorld = 64;
constexpr int kResumes = 1000;
constexpr std::uint64_t kPositions = 1'000'000;
constexpr double kResumeMsMax = 10;
constexpr double kPlanMibMax = 16;

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

std::shared_ptr<const LoaderJob> open_job(OrderMode mode, const std::vector<SourceFacts>& facts) {
  JobChoice choice;
  choice.order = {.mode = mode, .seed = 17};
  for (const SourceFacts& each : facts)
    choice.sources.push_back({.name = each.version, .share = {.kind = ShareKind::kWeight}});
  return require(LoaderJob::make(std::move(choice), facts));
}

// Two datasets that are mixed, with as many samples together.
std::vector<SourceFacts> facts_of_two() {
  std::vector<SourceFacts> facts;
  for (int n = 0; n < 2; ++n) {
    facts.push_back(
        {.version = fmt::format("d{}@v1", n),
         .content_digest = {std::byte(n + 1)},
         .reader = "mds",
         .samples = kSamples / 2,
         .bytes = kSamples / 2 * kSampleBytes,
         .stretches = std::vector<SampleStretch>(
             kShards / 2, {.samples = kShardSamples, .bytes = kShardSamples * kSampleBytes})});
  }
  return facts;
}

void report_figure(const std::string& name, double value, const std::string& unit, double goal,
                   const RunFigures& figures) {
  Comparison comparison;
  comparison.rounds.push_back({.ours = figures, .peer = figures, .peer_name = "itself"});
  comparison.ceiling_rate = figures.rate();
  report({.bench = name,
          .value = value,
          .unit = unit,
          .ratio = value / goal,
          .against = fmt::format("{:.0f} {}", goal, unit),
          .goal = Goal{Goal::Kind::kAtMost, 1},
          .cpu_s = figures.cpu_s,
          .rss_mib = figures.rss_mib},
         comparison, requests_unit());
}

// Of this thread. The figure is meant for one core, whatever else runs.
double cpu_ms() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// From the text of a state at a random place to the samples of the next step. The slowest counts.
double slowest_resume_ms(const std::shared_ptr<const LoaderJob>& job) {
  std::mt19937_64 random(1);
  std::vector<double> times_ms;
  LoaderState state = job->first_state();
  for (int n = 0; n < kResumes; ++n) {
    state.epoch = random() % 100;
    state.position = random() % kSamples;
    const std::string text = encode_loader_state(state);
    const RankChoice choice{.rank = random() % kWorld,
                            .topology = {.world = kWorld, .ranks_per_node = 8},
                            .batch = kBatch};
    const double start_ms = cpu_ms();
    JobCursor cursor = require(JobCursor::resume(job, choice, require(decode_loader_state(text))));
    const auto places = places_of(*cursor.order(), cursor.take().share);
    times_ms.push_back(cpu_ms() - start_ms);
    if (places.empty()) give_up({StatusCode::kInternal, "a step without samples"});
  }
  std::ranges::sort(times_ms);
  fmt::print("  {} resumes: median {:.3f} ms, 99 % below {:.3f} ms, slowest {:.3f} ms of CPU\n",
             kResumes, times_ms[kResumes / 2], times_ms[kResumes * 99 / 100], times_ms.back());
  return times_ms.back();
}

// What the process has grown by when this many samples were found, all over an epoch.
double grown_mib(const std::shared_ptr<const LoaderJob>& job) {
  const std::uint64_t before = resident_bytes();
  const JobEpoch order = require(job->epoch(job->first_state().phases, 3));
  std::uint64_t sum = 0;
  for (std::uint64_t n = 0; n < kPositions; ++n)
    sum += order.at(n * (kSamples / kPositions)).sample;
  if (sum == 0) give_up({StatusCode::kInternal, "no sample was found"});
  const std::uint64_t after = resident_bytes();
  return after > before ? static_cast<double>(after - before) / kMiB : 0;
}

void run() {
  const std::vector<SourceFacts> facts = facts_of_two();
  for (const OrderMode mode : {OrderMode::kBlock, OrderMode::kFull}) {
    const std::string name = fmt::format("loader_plan_{}", order_mode_name(mode));
    const auto start = std::chrono::steady_clock::now();
    const auto job = open_job(mode, facts);
    fmt::print("{}: {} samples in {} shards are opened in {:.1f} ms\n", name, kSamples, kShards,
               ms_since(start));
    const ClientUsage resuming;
    const double slowest_ms = slowest_resume_ms(job);
    report_figure(name + "_resume", slowest_ms, "CPU ms", kResumeMsMax, resuming.figures(kResumes));
    const ClientUsage finding;
    const double mib = grown_mib(job);
    report_figure(name + "_memory", mib, "MiB", kPlanMibMax,
                  finding.figures(static_cast<double>(kPositions)));
  }
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  (void)parse_options(argc, argv, {.seconds = 1, .rounds = 1});
  return run_bench("loader_plan", [] { run(); });
}
