#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "loader/block_layout.h"
#include "loader/dealing.h"
#include "loader/epoch_order.h"

namespace millrace {

struct SimulationOptions {
  OrderPlan order = {};
  std::uint64_t epoch = 0;
  Topology topology = {};
  std::uint64_t batch = 256;  // Of each rank.
  // The cache of each node; 0: as large as it takes.
  std::uint64_t cache_bytes = 0;
  // Longer epochs are looked at up to here: memory is 16 bytes for each position.
  std::uint64_t positions_max = 10'000'000;
  // The class of a sample, or null.
  std::function<std::int64_t(std::uint64_t sample)> label = nullptr;
};

// How well an order is shuffled, by samples of consecutive positions.
struct ShuffleQuality {
  // Different blocks of 4 MiB, and classes, among 256 consecutive positions, on average.
  double blocks_in_batch = 0;
  double classes_in_batch = 0;
  // In bits, of the distances between neighbours in the order: by sample and by block, as their
  // harmonic mean.
  double entropy_bits = 0;
};

struct SimulationReport {
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::uint64_t steps = 0;
  std::uint64_t dropped = 0;
  std::uint64_t padded = 0;
  std::uint64_t empty_shares = 0;
  std::uint64_t positions = 0;  // That were looked at.
  ShuffleQuality quality = {};
  ShuffleQuality full = {};  // Of a full shuffle of the same.
  // What all nodes together fetch from the store for these positions, by 64 KiB, and what of it is
  // needed at all.
  std::uint64_t fetched_bytes = 0;
  std::uint64_t needed_bytes = 0;
  // The cache that a node needs to fetch nothing twice: the most for any node.
  std::uint64_t cache_bytes_min = 0;
  // For the first step: the most for any node.
  std::uint64_t first_step_bytes = 0;
  std::uint64_t first_step_requests = 0;
};

// What an epoch would be like, from the sizes of the samples alone: nothing is read. Samples are
// taken to lie one behind the other, each as large as the average of its stretch. kInvalidArgument
// as Dealing. Takes some seconds for 10 million positions.
Result<SimulationReport> simulate_epoch(const std::vector<SampleStretch>& stretches,
                                        const SimulationOptions& options);

}  // namespace millrace
