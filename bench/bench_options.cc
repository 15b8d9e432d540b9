#include "bench/bench_options.h"

#include <cstdlib>
#include <utility>

#include <CLI/CLI.hpp>

namespace millrace::bench {

BenchOptions parse_options(int argc, char** argv, BenchOptions defaults) {
  BenchOptions options = std::move(defaults);
  CLI::App app("A benchmark of Millrace; docs/benchmarks.md says what it measures.");
  app.option_defaults()->always_capture_default();
  app.add_option("--seconds", options.seconds, "About how long one timed run takes")
      ->check(CLI::Range(0.1, 60.0));
  app.add_option("--rounds", options.rounds, "How often ours and the peer run in turn")
      ->check(CLI::Range(1, 100));
  app.add_option("--server", options.server, "Only against this one")
      ->check(CLI::IsMember({"nginx", "ceph", "slow"}));
  app.add_option("--loops", options.loops, "Event loops of our HTTP client")
      ->check(CLI::Range(1, 64));
  if (options.files > 0) {
    app.add_option("--files", options.files, "How many files are published")
        ->check(CLI::Range(1000, 10'000'000));
    app.add_flag("--tls", options.tls, "Over https, where no client hashes what it sends");
  }
  if (!options.parts.empty()) {
    app.add_option("--only", options.only, "Only this part")->check(CLI::IsMember(options.parts));
  }
  if (!options.congestion.empty()) {
    app.add_option("--congestion", options.congestion, "Congestion control of all connections");
  }
  app.add_flag("--ours-only", options.ours_only, "No peers and no result: for a profiler");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

}  // namespace millrace::bench
