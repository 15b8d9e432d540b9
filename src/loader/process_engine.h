#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cache/planned_reads.h"
#include "loader/batch_engine.h"

namespace millrace {

// A dataset that is open in this process. Files outlive their source.
struct OpenSource {
  std::shared_ptr<SampleFiles> files = {};
  std::shared_ptr<SampleSource> source = {};
  SourceFacts facts = {};
};

// Reads the samples of a job in this process.
class ProcessEngine final : public BatchEngine {
 public:
  // `plans` is the cache's that the sources are read through, or null; it outlives this.
  ProcessEngine(std::vector<OpenSource> sources, PlannedReads* plans);

  std::string_view kind() const override { return "process"; }
  const std::vector<SourceFacts>& sources() const override { return facts_; }
  Result<BatchAnswer> read(const RequestContext& context, std::uint64_t epoch,
                           std::span<const PlacedSample> places) override {
    return assembler_.read(context, memory_, epoch, places);
  }
  // The same with memory that the caller chooses.
  Result<BatchAnswer> read_into(const RequestContext& context, BatchMemoryPool& memory,
                                std::uint64_t epoch, std::span<const PlacedSample> places) {
    return assembler_.read(context, memory, epoch, places);
  }
  std::unique_ptr<BatchPlan> start_plan(std::shared_ptr<const Caller> caller) override;
  void report(const LoaderReport& report) override MR_EXCLUDES(mutex_);
  Result<std::vector<LostPlace>> lost(const RequestContext& context) override MR_EXCLUDES(mutex_);

 private:
  class CachePlan;

  const std::vector<OpenSource> sources_;
  std::vector<SourceFacts> facts_;
  PlannedReads* const plans_;
  const BatchAssembler assembler_;
  BatchMemoryPool memory_;
  Mutex mutex_;
  LostPlaces lost_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
