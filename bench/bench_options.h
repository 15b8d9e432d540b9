#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace::bench {

struct BenchOptions {
  double seconds = 1.5;  // About how long one timed run takes, where it can be chosen.
  int rounds = 5;
  std::string server{};     // "nginx", "ceph", or "slow" behind a proxy; empty: all there are.
  std::size_t loops = 1;    // Event loops of our HTTP client.
  std::uint64_t files = 0;  // How many are published; 0 where none are.
  bool tls = false;         // Over https, where files are published.
  // Of TCP, in a network of the benchmark's own; empty where it is the machine's.
  std::string congestion{};
  bool ours_only = false;  // No peers and no result: for a profiler.
  // What can run alone, and which of it does; empty: all.
  std::vector<std::string> parts{};
  std::string only{};

  bool wants(const std::string& name) const { return server.empty() || server == name; }
  bool wants_part(const std::string& name) const { return only.empty() || only == name; }
};

// Reads the command line into `defaults`. Bad or --help: prints what to do and ends the process.
BenchOptions parse_options(int argc, char** argv, BenchOptions defaults);

}  // namespace millrace::bench
