#pragma once

#include <cstdint>

#include "base/status.h"

namespace millrace {

// Who takes part in a job.
struct Topology {
  std::uint64_t world = 1;
  // Ranks of one node follow one another. Decides which rank takes which samples of a step, and so
  // how little the nodes fetch; never which samples the step has. Divides the world.
  std::uint64_t ranks_per_node = 1;
  // So many consecutive ranks see the same samples, as in tensor or sequence parallel groups.
  // Divides the world.
  std::uint64_t replication = 1;

  // The groups that see different samples.
  std::uint64_t groups() const { return world / replication; }
};

// What becomes of the samples at the end that fill no step.
enum class LastSteps : std::uint8_t {
  kEven,  // They are dealt evenly over the last two steps: each sample once.
  kDrop,  // They are left out.
  kPad,   // The first of the epoch are taken again, until the last step is full.
};

struct DealingOptions {
  std::uint64_t samples = 0;  // Of the epoch.
  std::uint64_t start = 0;    // Positions below are consumed.
  Topology topology = {};
  std::uint64_t batch = 1;
  LastSteps last = LastSteps::kEven;
};

// Positions first, first + stride, ...
struct Share {
  std::uint64_t first = 0;
  std::uint64_t stride = 1;
  std::uint64_t count = 0;

  std::uint64_t at(std::uint64_t n) const { return first + n * stride; }
  bool operator==(const Share&) const = default;
};

// Deals the positions of an epoch to ranks, step by step. A step takes the positions that follow
// those of the step before, whatever the topology, so that a job can go on with another one.
//
// 1. Every rank has the same number of steps, S = ceil(rest / (groups x batch)), rounded down
//    instead with kDrop.
// 2. With kEven each position from `start` on is in one share. All steps are full but the last two,
//    over which the rest is dealt so that no two ranks differ by more than one.
// 3. No share has more than `batch`. None is empty, except where there are fewer positions left
//    than groups x S: with a batch of 1, or for the last few samples after a resume. Then the last
//    step has empty shares, and empty_shares() says how many.
// 4. Group g of n takes positions p with p mod n = r(g), in every step; r() gives the groups of one
//    node of m the values with r mod m alike, so that a node keeps to its lanes (windowed_order.h).
//
// Takes no memory by samples. Immutable, safe from any thread.
class Dealing {
 public:
  static constexpr unsigned kAlgorithm = 1;

  // kInvalidArgument, with what to do, for fewer samples than groups, for a topology whose numbers
  // do not divide, for a batch of 0, a start behind the end, or when kDrop leaves nothing.
  static Result<Dealing> make(const DealingOptions& options);

  std::uint64_t steps() const { return steps_; }
  // Positions may be samples() and more with kPad: taken modulo samples().
  Share share(std::uint64_t step, std::uint64_t rank) const;
  // Where the job is when the step begins; of steps(): at its end.
  std::uint64_t position(std::uint64_t step) const;

  // Samples that are never delivered in this epoch, or twice.
  std::uint64_t dropped() const { return dropped_; }
  std::uint64_t padded() const { return padded_; }
  std::uint64_t empty_shares() const;

 private:
  explicit Dealing(const DealingOptions& options);
  std::uint64_t residue(std::uint64_t rank) const;

  DealingOptions options_;
  std::uint64_t groups_;
  std::uint64_t steps_ = 0;
  std::uint64_t full_steps_ = 0;
  std::uint64_t first_of_last_ = 0;  // Positions of the last step but one, where not full.
  std::uint64_t end_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t padded_ = 0;
};

}  // namespace millrace
