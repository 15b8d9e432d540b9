#include "loader/emulated_training.h"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "loader/batch_loader.h"

namespace millrace {
namespace {

using std::chrono::microseconds;

// MLPerf Storage v2.0.
constexpr std::array<TrainingWorkload, 3> kWorkloads = {{
    {.name = "unet3d",
     .batch = 7,
     .step_h100 = microseconds(323'000),
     .step_a100 = microseconds(636'000),
     .utilisation_min = 0.9},
    {.name = "resnet50",
     .batch = 400,
     .step_h100 = microseconds(224'000),
     .step_a100 = microseconds(435'000),
     .utilisation_min = 0.9},
    {.name = "cosmoflow",
     .batch = 1,
     .step_h100 = microseconds(3'500),
     .step_a100 = microseconds(5'510),
     .utilisation_min = 0.7},
}};

// What one accelerator did.
struct AcceleratorRun {
  Status status = {};
  TrainingReport report = {};
  Duration computing{};
};

AcceleratorRun run_accelerator(const RequestContext& context, BatchLoader& loader,
                               const EmulatedTraining& training, Clock& clock) {
  AcceleratorRun run;
  const TimePoint begun = clock.now();
  TimePoint counted_from = begun;
  for (std::uint64_t step = 0; step <= training.steps_max;) {
    auto batch = loader.next(context.deadline());
    if (!batch) {
      run.status = batch.error();
      return run;
    }
    if (batch->kind == NextKind::kNotYet) {
      run.status = {StatusCode::kDeadlineExceeded, "no batch came in time"};
      return run;
    }
    if (batch->kind == NextKind::kEndOfEpoch) continue;
    if (step == 0) {
      run.report.first_batch = clock.now() - begun;
    } else {
      ++run.report.steps;
      run.computing += training.step;
      run.report.samples += batch->batch.view->samples();
      run.report.bytes += batch->batch.view->bytes().size();
    }
    if (!clock.sleep_until(clock.now() + training.step, &context.cancellation())) {
      run.status = context.check(clock);
      return run;
    }
    if (step++ == 0) counted_from = clock.now();
  }
  run.report.total = clock.now() - counted_from;
  return run;
}

}  // namespace

std::span<const TrainingWorkload> training_workloads() { return kWorkloads; }

Result<TrainingReport> emulate_training(const RequestContext& context,
                                        std::shared_ptr<BatchEngine> engine,
                                        std::shared_ptr<const LoaderJob> job,
                                        const EmulatedTraining& training, Clock& clock) {
  std::vector<std::unique_ptr<BatchLoader>> loaders;
  for (std::uint64_t rank = 0; rank < training.accelerators; ++rank) {
    LoaderOptions options;
    options.choice = {
        .rank = rank,
        .topology = {.world = training.accelerators, .ranks_per_node = training.accelerators},
        .batch = training.batch};
    options.prefetch.batches = training.prefetch;
    MR_ASSIGN_OR_RETURN(loaders.emplace_back(), BatchLoader::open(engine, job, options, 0));
  }
  std::vector<AcceleratorRun> runs(loaders.size());
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < loaders.size(); ++n) {
    threads.emplace_back([&context, &training, &clock, loader = loaders[n].get(), run = &runs[n]] {
      *run = run_accelerator(context, *loader, training, clock);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  TrainingReport all;
  Duration computing{};
  Duration total{};
  for (const AcceleratorRun& run : runs) {
    MR_RETURN_IF_ERROR(run.status);
    all.steps = run.report.steps;
    all.samples += run.report.samples;
    all.bytes += run.report.bytes;
    all.first_batch = std::max(all.first_batch, run.report.first_batch);
    all.total = std::max(all.total, run.report.total);
    computing += run.computing;
    total += run.report.total;
  }
  all.utilisation = total.count() == 0 ? 0
                                       : static_cast<double>(computing.count()) /
                                             static_cast<double>(total.count());
  return all;
}

}  // namespace millrace
