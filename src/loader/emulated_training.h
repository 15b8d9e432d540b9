#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/request_context.h"
#include "base/status.h"
#include "loader/batch_engine.h"
#include "loader/loader_job.h"

namespace millrace {

// A training of MLPerf Storage: what its accelerators do with a batch is to take so long.
struct TrainingWorkload {
  std::string_view name;
  std::uint64_t batch = 1;
  Duration step_h100{};
  Duration step_a100{};
  double utilisation_min = 0.9;  // For a result that counts.
};
std::span<const TrainingWorkload> training_workloads();

struct EmulatedTraining {
  std::uint64_t accelerators = 1;  // Ranks of one node.
  std::uint64_t batch = 1;
  Duration step{};                // Of computing.
  std::uint64_t steps_max = 500;  // Of each accelerator; epochs follow one another.
  std::size_t prefetch = 4;
};

struct TrainingReport {
  std::uint64_t steps = 0;  // Of each accelerator, without the first, which does not count.
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  Duration first_batch{};
  // Of the slowest.
  Duration total{};
  // Time computing by time in all, over all accelerators.
  double utilisation = 0;
};

// Trains without accelerators: threads take batches, and sleep for as long as computing would take.
// Fails as a loader does, and with kInvalidArgument where there are fewer samples than
// accelerators. Blocks until done or the context is cancelled.
Result<TrainingReport> emulate_training(const RequestContext& context,
                                        std::shared_ptr<BatchEngine> engine,
                                        std::shared_ptr<const LoaderJob> job,
                                        const EmulatedTraining& training,
                                        Clock& clock = system_clock());

}  // namespace millrace
