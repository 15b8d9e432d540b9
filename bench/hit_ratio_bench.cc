// Which share of the bytes the cache's eviction finds in the cache, on traces of training jobs:
// LRU, ours without plans, ours with plans, and Belady's optimum. No I/O: blocks are numbers here.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/bytes.h"
#include "bench/bench_report.h"
#include "bench/cache_traces.h"
#include "bench/eviction_replay.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kSeed = 20250301;

struct HitRatioOptions {
  std::string trace_file;
  std::uint64_t cache_mib = 0;
  std::uint64_t seed = kSeed;
};

struct Replays {
  ReplayResult lru;
  ReplayResult unplanned;
  ReplayResult planned;
  ReplayResult planned_late;
  ReplayResult belady;
};

double fetched_ratio(const ReplayResult& ours, const ReplayResult& peer) {
  return static_cast<double>(ours.fetched_bytes) / static_cast<double>(peer.fetched_bytes);
}

// The figures in the line are how fast the policy decides, beside LRU.
void report_policy(const BenchResult& result, const ReplayResult& ours, const ReplayResult& lru) {
  Comparison comparison;
  comparison.rounds.push_back(
      {.ours = ours.figures, .peer = lru.figures, .peer_name = "the decisions of LRU"});
  comparison.ceiling_rate = std::max(ours.figures.rate(), lru.figures.rate());
  report(result, comparison, requests_unit());
}

BenchResult result_of(const std::string& name, const ReplayResult& ours) {
  BenchResult result;
  result.bench = "hit_ratio_" + name;
  result.value = ours.hit_ratio();
  result.unit = "of the bytes";
  result.cpu_s = ours.figures.cpu_s;
  result.rss_mib = ours.figures.rss_mib;
  return result;
}

void print_replays(const Trace& trace, const Replays& all) {
  fmt::print(
      "{} ({} reads): bytes found in the cache, bytes fetched over Belady's{}, "
      "bytes written to the cache over bytes asked for\n",
      trace.name, trace.reads.size(), trace.has_equal_sizes() ? "" : " (approximate)");
  const auto line = [&](const char* name, const ReplayResult& replay) {
    fmt::print("  {:20} {:.3f}  {:6.3f}  {:.3f}\n", name, replay.hit_ratio(),
               fetched_ratio(replay, all.belady),
               static_cast<double>(replay.written_bytes) / static_cast<double>(replay.asked_bytes));
  };
  line("LRU", all.lru);
  line("ours", all.unplanned);
  if (trace.has_plan()) {
    line("ours, plans early", all.planned);
    line("ours, plans late", all.planned_late);
  }
  line("Belady's optimum", all.belady);
}

void measure(const Trace& trace) {
  Replays all{.lru = replay_lru(trace),
              .unplanned = replay_unplanned(trace),
              .planned = {},
              .planned_late = {},
              .belady = replay_belady(trace)};
  if (trace.has_plan()) {
    all.planned = replay_planned(trace, Announcement::kEpochAhead);
    all.planned_late = replay_planned(trace, Announcement::kAtTheLast);
  }
  print_replays(trace, all);

  BenchResult unplanned = result_of(trace.name, all.unplanned);
  unplanned.ratio = fetched_ratio(all.unplanned, all.lru);
  unplanned.against = "the bytes LRU fetches";
  report_policy(unplanned, all.unplanned, all.lru);
  if (!trace.has_plan()) return;
  BenchResult planned = result_of(trace.name + "_planned", all.planned);
  planned.ratio = fetched_ratio(all.planned, all.belady);
  planned.against = "the bytes Belady's optimum fetches";
  if (trace.name == "shuffled_4x") planned.goal = Goal{Goal::Kind::kAtMost, 1.05};
  report_policy(planned, all.planned, all.lru);
}

HitRatioOptions parse_hit_ratio_options(int argc, char** argv) {
  HitRatioOptions options;
  CLI::App app("The hit ratio of the cache's eviction; docs/benchmarks.md says what it measures.");
  auto* trace = app.add_option("--trace", options.trace_file,
                               "A recorded trace, lines of: object block bytes. Only this one runs")
                    ->check(CLI::ExistingFile);
  auto* cache = app.add_option("--cache-mib", options.cache_mib, "The cache for --trace")
                    ->check(CLI::Range(1, 1 << 30));
  trace->needs(cache);
  cache->needs(trace);
  app.add_option("--seed", options.seed, "Of the synthetic traces")->capture_default_str();
  // tools/bench passes what is meant for all benchmarks on to each; nothing here is timed.
  std::string ignored;
  app.add_option("--seconds,--rounds,--server,--loops", ignored)->take_last()->group("");
  app.add_flag("--ours-only")->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

void run(const HitRatioOptions& options) {
  if (!options.trace_file.empty())
    return measure(recorded_trace(options.trace_file, options.cache_mib * kMiB));
  fmt::print("seed {}\n", options.seed);
  for (const Trace& trace : synthetic_traces(options.seed))
    measure(trace);
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const HitRatioOptions options = parse_hit_ratio_options(argc, argv);
  return run_bench("hit_ratio", [&] { run(options); });
}
