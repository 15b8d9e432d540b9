#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/request_context.h"
#include "base/status.h"
#include "loader/batch_builder.h"
#include "loader/read_answers.h"
#include "loader/sample_source.h"

namespace millrace {

// A sample that cannot be had, however often it is read.
struct SampleFailure {
  PlacedSample place = {};
  std::string key = {};  // Empty when not even that is known.
  Status why = {};
};

// A batch; or, where some of its samples cannot be had, all of those and no batch.
struct BatchAnswer {
  Batch batch = {};
  std::vector<SampleFailure> failed = {};
};

// The samples of one dataset of a job. Both outlive who reads them.
struct AssembledSource {
  SampleFiles& files;
  SampleSource& source;
};

// Makes batches: reads all samples of one side by side, decodes them, and lays them out.
//
// Holds no state: safe from any thread. Memory for what was read and not yet laid out is bounded
// by kWaveBytes for each caller, but for samples that are larger.
class BatchAssembler {
 public:
  explicit BatchAssembler(std::vector<AssembledSource> sources, Clock& clock = system_clock())
      : sources_(std::move(sources)), clock_(clock) {}

  // Places name sources and samples that there are: kInvalidArgument for others. Failures that may
  // pass are tried again until the context ends: kDeadlineExceeded then says what was in the way.
  // Without places, the batch has the columns of a sample of each source. Blocks.
  Result<BatchAnswer> read(const RequestContext& context, BatchMemoryPool& memory,
                           std::uint64_t epoch, std::span<const PlacedSample> places) const;

  // Looks samples up side by side, those of each dataset, so that plan() need not wait for each.
  // Blocks.
  void look_up(const RequestContext& context,
               const std::vector<std::vector<std::uint64_t>>& samples) const;
  // What reading a sample will ask the cache for. Blocks where the sample has to be looked up.
  Status plan(const RequestContext& context, std::uint64_t source, std::uint64_t sample,
              std::vector<PlannedRead>& reads) const;

 private:
  struct PendingSample;
  struct Piece;

  Status check(std::uint64_t source, std::uint64_t sample) const;
  void locate(const RequestContext& context, PendingSample& sample) const;
  // The bytes of samples, or why they cannot be had. `prepared` as read_pending()'s.
  Result<std::vector<PendingSample>> read_places(const RequestContext& context,
                                                 BatchMemoryPool* prepared,
                                                 std::span<const PlacedSample> places) const;
  static void decode(std::vector<PendingSample> pending, std::vector<ReadSample>& samples,
                     std::vector<SampleFailure>& failed);
  // A sample of each source, as far as one can be had.
  Result<std::vector<ReadSample>> read_models(const RequestContext& context) const;
  // Has the memory that the samples go into `prepared`, unless null, while they are on their way.
  void read_pending(const RequestContext& context, std::vector<PendingSample>& samples,
                    BatchMemoryPool* prepared) const;
  static std::shared_ptr<ReadAnswers> start_wave(const RequestContext& context,
                                                 const std::vector<PendingSample>& samples,
                                                 std::span<const Piece> pieces);
  static void take_wave(std::vector<PendingSample>& samples, std::span<const Piece> pieces,
                        ReadAnswers& answers, bool keep);
  // Tries what failed in passing, until nothing is left or the context ends.
  Status read_until_settled(const RequestContext& context, BatchMemoryPool* prepared,
                            std::vector<PendingSample>& samples) const;

  const std::vector<AssembledSource> sources_;
  Clock& clock_;
};

}  // namespace millrace
