#pragma once

#include <functional>
#include <optional>
#include <string>

#include "bench/comparison.h"

namespace millrace::bench {

// How amounts of bytes or requests become figures for people.
struct Unit {
  std::string rate;     // "MiB/s"
  double per_rate = 1;  // Amount per second in one of `rate`.
  std::string cost;     // "CPU s/GiB"
  double per_cost = 1;  // Amount in one of `cost`.
};
Unit bytes_unit();
Unit requests_unit();

struct Goal {
  enum class Kind { kAtLeast, kAtMost };
  Kind kind = Kind::kAtLeast;
  double ratio = 1;

  bool met(double measured) const {
    return kind == Kind::kAtLeast ? measured >= ratio : measured <= ratio;
  }
};

// One line of the results file.
struct BenchResult {
  std::string bench;
  double value = 0;
  std::string unit;
  double ratio = 0;
  std::string against;  // What the ratio is to.
  std::optional<Goal> goal;
  double cpu_s = 0;
  double rss_mib = 0;
  double rss_mib_max = 0;  // The client must stay below this; 0: no demand.
};

// The medians of a comparison, under a name.
BenchResult result_of(const Comparison& comparison, std::string bench, const Unit& unit,
                      std::string against, Goal goal, double rss_mib_max = 0);

// Prints the result and its rounds, and appends it with the machine and the time to
// MILLRACE_BENCH_RESULTS (default build/bench/results.jsonl). Throws std::runtime_error when the
// file cannot be written.
void report(const BenchResult& result, const Comparison& comparison, const Unit& unit);

// Runs ours over and over and prints its figures only: for a profiler.
void run_alone(const Contender& ours, int rounds, const Unit& unit);

// Runs the body of a main(): a failure becomes one sentence and status 1.
int run_bench(const char* name, const std::function<void()>& body);

}  // namespace millrace::bench
