#include "loader/simulation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <unordered_set>

#include "loader/simulated_fetches.h"

namespace millrace {

namespace {

constexpr std::uint64_t kQualityBatch = 256;
// Distances are counted one by one up to here, and in groups above.
constexpr int kDistanceBits = 24;

// The entropy of distances between neighbours, in bits.
class DistanceEntropy {
 public:
  explicit DistanceEntropy(std::uint64_t size)
      : shift_(std::max(0, static_cast<int>(std::bit_width(size)) - kDistanceBits)),
        counts_((size >> shift_) + 1) {}

  void add(std::uint64_t value) {
    if (total_ > 0) ++counts_[(value > last_ ? value - last_ : last_ - value) >> shift_];
    ++total_;
    last_ = value;
  }
  double bits() const {
    double bits = 0;
    for (const std::uint32_t count : counts_) {
      if (count == 0) continue;
      const double share = count / static_cast<double>(total_ - 1);
      bits -= share * std::log2(share);
    }
    return bits;
  }

 private:
  int shift_;
  std::vector<std::uint32_t> counts_;
  std::uint64_t total_ = 0;
  std::uint64_t last_ = 0;
};

ShuffleQuality quality_of(const EpochOrder& order, const SimulatedBytes& bytes,
                          const SimulationOptions& options, std::uint64_t positions) {
  DistanceEntropy by_sample(order.size());
  DistanceEntropy by_block(bytes.bytes() / kOrderBlockBytes + 1);
  std::unordered_set<std::uint64_t> blocks;
  std::unordered_set<std::int64_t> classes;
  std::uint64_t blocks_sum = 0;
  std::uint64_t classes_sum = 0;
  std::uint64_t batches = 0;
  for (std::uint64_t position = 0; position < positions; ++position) {
    const std::uint64_t sample = order.at(position);
    const std::uint64_t block = bytes.range(sample).offset / kOrderBlockBytes;
    by_sample.add(sample);
    by_block.add(block);
    blocks.insert(block);
    if (options.label) classes.insert(options.label(sample));
    if ((position + 1) % kQualityBatch != 0 && position + 1 != positions) continue;
    blocks_sum += blocks.size();
    classes_sum += classes.size();
    ++batches;
    blocks.clear();
    classes.clear();
  }
  ShuffleQuality quality;
  quality.blocks_in_batch = static_cast<double>(blocks_sum) / static_cast<double>(batches);
  quality.classes_in_batch = static_cast<double>(classes_sum) / static_cast<double>(batches);
  const double samples_bits = positions > 1 ? by_sample.bits() : 0;
  const double blocks_bits = positions > 1 ? by_block.bits() : 0;
  if (samples_bits + blocks_bits > 0) {
    quality.entropy_bits = 2 * samples_bits * blocks_bits / (samples_bits + blocks_bits);
  }
  return quality;
}

// What one node reads, step by step.
SimulatedFetches node_reads(const EpochOrder& order, const SimulatedBytes& bytes,
                            const SimulationOptions& options, const Dealing& dealing,
                            std::uint64_t node, std::uint64_t steps) {
  SimulatedFetches fetches;
  const std::uint64_t first_rank = node * options.topology.ranks_per_node;
  const std::uint64_t replication = options.topology.replication;
  for (std::uint64_t step = 0; step < steps; ++step) {
    for (std::uint64_t rank = 0; rank < options.topology.ranks_per_node; ++rank) {
      // The first of a group on this node reads for all.
      if (rank > 0 && (first_rank + rank) % replication != 0) continue;
      const Share share = dealing.share(step, first_rank + rank);
      for (std::uint64_t n = 0; n < share.count; ++n) {
        fetches.read(bytes.range(order.at(share.at(n) % order.size())));
      }
    }
  }
  return fetches;
}

}  // namespace

Result<SimulationReport> simulate_epoch(const std::vector<SampleStretch>& stretches,
                                        const SimulationOptions& options) {
  const SimulatedBytes bytes(stretches);
  MR_ASSIGN_OR_RETURN(const Dealing dealing, Dealing::make({.samples = bytes.samples(),
                                                            .start = 0,
                                                            .topology = options.topology,
                                                            .batch = options.batch,
                                                            .last = LastSteps::kEven}));
  const auto layout = std::make_shared<const BlockLayout>(stretches);
  const EpochOrder order(options.order, layout, options.epoch);
  OrderPlan full_plan = options.order;
  full_plan.mode = OrderMode::kFull;
  const EpochOrder full(full_plan, layout, options.epoch);

  SimulationReport report{.samples = bytes.samples(),
                          .bytes = bytes.bytes(),
                          .steps = dealing.steps(),
                          .dropped = dealing.dropped(),
                          .padded = dealing.padded(),
                          .empty_shares = dealing.empty_shares()};
  std::uint64_t steps = dealing.steps();
  const std::uint64_t step_samples = options.batch * options.topology.groups();
  if (report.samples > options.positions_max) {
    steps = std::clamp<std::uint64_t>(options.positions_max / step_samples, 1, steps);
  }
  report.positions = dealing.position(steps);
  report.quality = quality_of(order, bytes, options, report.positions);
  report.full = quality_of(full, bytes, options, report.positions);
  const std::uint64_t nodes = options.topology.world / options.topology.ranks_per_node;
  SimulatedFetches all;
  for (std::uint64_t position = 0; position < report.positions; ++position) {
    all.read(bytes.range(order.at(position)));
  }
  report.needed_bytes = all.needed_bytes();
  for (std::uint64_t node = 0; node < nodes; ++node) {
    const SimulatedFetches reads = node_reads(order, bytes, options, dealing, node, steps);
    report.fetched_bytes += reads.fetched_bytes(options.cache_bytes);
    report.cache_bytes_min = std::max(report.cache_bytes_min, reads.cache_bytes_min());
    const SimulatedFetches first = node_reads(order, bytes, options, dealing, node, 1);
    report.first_step_bytes = std::max(report.first_step_bytes, first.needed_bytes());
  }
  const Share share = dealing.share(0, 0);
  report.first_step_requests =
      share.count *
      std::max<std::uint64_t>(1, options.topology.ranks_per_node / options.topology.replication);
  return report;
}

}  // namespace millrace
