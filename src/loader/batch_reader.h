#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/request_context.h"
#include "base/status.h"
#include "loader/batch_engine.h"
#include "loader/job_order.h"
#include "loader/sample_loss.h"

namespace millrace {

struct FaultPolicy {
  FaultAction action = FaultAction::kRaise;
  // So many in a row are a failure after all: then it is not the samples.
  std::uint64_t failures_max = 100;
};

// Failures in a row, over all readers of a job. Safe from any thread.
class FailureRow {
 public:
  // How many there are then.
  std::uint64_t add(std::uint64_t failures) { return count_.fetch_add(failures) + failures; }
  // A sample was had.
  void end() { count_.store(0); }

 private:
  std::atomic<std::uint64_t> count_ = 0;
};

struct ReadBatch {
  Batch batch = {};
  // What is not in it, or is replaced. Whoever hands the batch out reports it to the engine: what
  // was read ahead may never be asked for.
  std::vector<SampleLoss> losses = {};
};

// Reads a batch and does what the policy says. The rule of a substitute is a function of the order
// alone, so it is the same for any topology: the sample at position p is replaced by the first one
// behind p, around the end, that can be had; position and seed stay p's. Where it fails for
// samples, these were reported. Safe from any thread.
Result<ReadBatch> read_batch(const RequestContext& context, BatchEngine& engine,
                             const JobEpoch& order, std::vector<PlacedSample> places,
                             const FaultPolicy& policy, FailureRow& row);

}  // namespace millrace
