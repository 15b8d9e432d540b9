#pragma once

#include <cstdint>

namespace millrace {

struct CacheModelFigures {
  std::uint64_t reads = 0;
  std::uint64_t failed_reads = 0;
  std::uint64_t evicted_blocks = 0;
  std::uint64_t restarts = 0;
};

// The cache on a real disk under eight threads, with evictions, restarts and faults, against a map
// of what each object is. Fails the test when a read is answered wrong, or fails for no reason.
CacheModelFigures run_cache_model(std::uint64_t seed, std::uint64_t reads);

}  // namespace millrace
