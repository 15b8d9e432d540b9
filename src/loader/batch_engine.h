#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/request_context.h"
#include "base/status.h"
#include "loader/batch_assembler.h"
#include "loader/block_layout.h"
#include "loader/lost_places.h"
#include "loader/planned_sample.h"
#include "loader/sample_loss.h"
#include "platform/digest.h"

namespace millrace {

// A dataset of a job, as who serves it found it.
struct SourceFacts {
  std::string version = {};  // "imagenet@v2", resolved; empty for what is not registered.
  Sha256Digest content_digest{};
  std::string reader = {};
  std::uint64_t samples = 0;  // All of them, before a split.
  std::uint64_t bytes = 0;
  std::vector<SampleStretch> stretches = {};
  std::vector<std::string> classes = {};
  bool operator==(const SourceFacts&) const = default;
};

// What a loader will read, said ahead so that it can be fetched in that order and evicted last. A
// hint: nothing depends on it, so nothing fails. Ends with its destruction. Needs one thread at a
// time; blocks.
class BatchPlan {
 public:
  virtual ~BatchPlan() = default;
  // Appends samples. Reads of them that begin after it has returned find them announced.
  virtual void extend(const RequestContext& context, std::span<const PlannedSample> samples) = 0;
  // So many samples from the beginning were read.
  virtual void advance(std::uint64_t samples_done) = 0;
};

// Who gives the samples of one job: this process, or the daemon of the machine. Knows nothing of
// orders, ranks and epochs: those are the loader's, who asks for places. So nothing is lost when it
// dies.
//
// Safe from any thread.
class BatchEngine {
 public:
  virtual ~BatchEngine() = default;

  // "process" or "daemon".
  virtual std::string_view kind() const = 0;
  virtual const std::vector<SourceFacts>& sources() const = 0;
  // As BatchAssembler::read(). Blocks until the context ends at most.
  virtual Result<BatchAnswer> read(const RequestContext& context, std::uint64_t epoch,
                                   std::span<const PlacedSample> places) = 0;
  // For reads of this caller. Never null. The engine outlives it.
  virtual std::unique_ptr<BatchPlan> start_plan(std::shared_ptr<const Caller> caller) = 0;
  // Passes on what became of the samples, where there is somebody who keeps it. Blocks
  // for a moment at most.
  virtual void report(const LoaderReport& /*report*/) {}
  // What was reported as skipped or replaced, by all who read for the job. Blocks.
  virtual Result<std::vector<LostPlace>> lost(const RequestContext& /*context*/) {
    return std::vector<LostPlace>();
  }
  // How often it had to be found again.
  virtual std::uint64_t reconnects() const { return 0; }
};

}  // namespace millrace
