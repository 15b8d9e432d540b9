#pragma once

#include <cstdint>

#include "bench/cache_traces.h"
#include "bench/run_figures.h"

namespace millrace::bench {

// What one policy did with one trace.
struct ReplayResult {
  std::uint64_t asked_bytes = 0;
  std::uint64_t fetched_bytes = 0;
  std::uint64_t written_bytes = 0;  // Of the fetched ones; the others were served and not kept.
  RunFigures figures;               // In reads.

  double hit_ratio() const {
    return 1 - static_cast<double>(fetched_bytes) / static_cast<double>(asked_bytes);
  }
};

ReplayResult replay_lru(const Trace& trace);
// Ours, told nothing.
ReplayResult replay_unplanned(const Trace& trace);
// When a job announces its next epoch.
enum class Announcement : std::uint8_t {
  kEpochAhead,  // At the beginning of this one.
  kAtTheLast,   // When a tenth of this one is left.
};
// Ours, where each job that has a plan announces it and reports its progress after each read.
ReplayResult replay_planned(const Trace& trace, Announcement announcement);
// Evicts what is used furthest in the future, which all of the trace is known for, and does not
// keep a block that is used later still. The optimum where all sizes are equal; otherwise close to
// it.
ReplayResult replay_belady(const Trace& trace);

}  // namespace millrace::bench
