#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/eviction_block.h"

namespace millrace::bench {

// One read of one block by one job. `position` counts the job's reads in the order of its plan;
// concurrent readers of a job make them a little out of order.
struct TraceRead {
  BlockId block;
  std::uint32_t bytes = 0;
  std::uint32_t job = 0;
  std::uint64_t position = 0;
};

struct TraceJob {
  bool has_plan = false;
  std::uint64_t epoch_reads = 0;  // How many reads it announces at a time.
};

// What jobs read from one cache, in the order of time.
struct Trace {
  std::string name;
  std::uint64_t cache_bytes = 0;
  std::vector<TraceJob> jobs;
  std::vector<TraceRead> reads;

  bool has_plan() const;
  bool has_equal_sizes() const;
};

// The synthetic ones; the same for the same seed, on every machine.
std::vector<Trace> synthetic_traces(std::uint64_t seed);

// Reads "object block bytes" lines; '#' begins a comment. The whole trace is one job that announces
// it at once. Throws std::runtime_error with file and line where something else stands.
Trace recorded_trace(const std::string& file, std::uint64_t cache_bytes);

}  // namespace millrace::bench
