#pragma once

#include <cstdint>

namespace millrace {

struct SimulationFigures {
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
  std::uint64_t evicted_blocks = 0;
  std::uint64_t store_faults = 0;
  std::uint64_t disk_faults = 0;
};

// The whole read path on one thread, with a manual clock and executors that run tasks in an order
// drawn from the seed: random reads, cancellations, deadlines, evictions, restarts and power
// losses, under a store and a disk that fail. Fails the test unless every read is answered once, in
// time, with the right bytes or a failure that the faults explain, and all is right in the end.
SimulationFigures simulate_cache(std::uint64_t seed);

// One after the other, until one fails.
SimulationFigures simulate_cache(std::uint64_t first_seed, std::uint64_t count);

}  // namespace millrace
