#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::bench {

// What stands for the content of a large cache.
struct SimulatedIndex {
  std::uint64_t objects = 0;
  std::vector<std::string> files;  // The indexes: what a start or a count has to read.
  std::uint64_t bytes = 0;         // Of those.
};

// Both add objects of `object_bytes` each, `total_bytes` together, to a cache directory that exists
// and that nobody has open. Their indexes are as the cache writes them, and their data are holes:
// they take no space and cannot be read. Throws std::runtime_error.
//
// In segments, numbered from 1: number 0 is the one that a new cache fills first.
SimulatedIndex simulate_small_objects(const std::string& directory, std::uint64_t object_bytes,
                                      std::uint64_t total_bytes);
// With files of their own.
SimulatedIndex simulate_large_objects(const std::string& directory, std::uint64_t object_bytes,
                                      std::uint64_t total_bytes);

// Reads all of the indexes, one after the other, and does nothing with them.
void read_plainly(const SimulatedIndex& index);

}  // namespace millrace::bench
