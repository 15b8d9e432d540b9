#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "loader/batch_engine.h"
#include "loader/job_order.h"
#include "loader/loader_state.h"
#include "loader/sample_readers.h"

namespace millrace {

// A dataset of a job, as the user names it.
struct SourceChoice {
  std::string name = {};  // A version, a directory or a URL.
  std::string reader = "auto";
  std::string directory = {};
  ReaderOptions options = {};
  // What it held when it was opened before, for who opens it again. Nothing: as it is now.
  std::optional<Sha256Digest> content = {};
  std::optional<SplitRule> split = {};
  std::uint64_t split_seed = 0;
  MixShare share = {};
};

// All that decides which sample stands where.
struct JobChoice {
  std::vector<SourceChoice> sources = {};
  JobOrderOptions order = {};
};

// The datasets of a job and their order, as far as it is the same for all epochs. A function of
// what the user chose and of contents; the phases of a mix that was changed are the state's.
//
// Immutable, safe from any thread.
class LoaderJob {
 public:
  // `facts` are those of the choice's sources. kInvalidArgument names the dataset, by its number,
  // that has nothing to give, or what is wrong with the shares.
  static Result<std::shared_ptr<const LoaderJob>> make(JobChoice choice,
                                                       const std::vector<SourceFacts>& facts);

  const JobChoice& choice() const { return choice_; }
  // After their splits.
  std::uint64_t source_samples(std::size_t source) const {
    return sources_[source].layout->samples();
  }
  // As it begins: epoch 0, position 0, the shares of the choice.
  const LoaderState& first_state() const { return first_state_; }
  // Of the first epoch.
  std::uint64_t samples() const { return samples_; }
  Result<JobEpoch> epoch(const std::vector<MixPhase>& phases, std::uint64_t epoch) const {
    return JobEpoch::make(choice_.order, sources_, phases, epoch);
  }

  // `phases` with other shares, as soon as they can begin behind a position. kInvalidArgument as
  // mix_counts(), kResourceExhausted for too many changes in one epoch.
  Result<std::vector<MixPhase>> changed_phases(std::vector<MixPhase> phases, std::uint64_t epoch,
                                               std::uint64_t position,
                                               std::vector<MixShare> shares) const;
  // How a job goes on from a state: as that says, or, where the choice has other shares than the
  // job had that saved it, with these from its position on. A function of choice and state alone,
  // so that all ranks and those who read for them find the same. kInvalidArgument for a state of
  // another job.
  Result<std::vector<MixPhase>> phases_from(const LoaderState& state) const;

 private:
  LoaderJob() = default;

  JobChoice choice_;
  std::vector<JobSource> sources_;
  LoaderState first_state_;
  std::uint64_t samples_ = 0;
};

// Phases before the last one that says how the epoch begins are history.
void forget_ended(std::vector<MixPhase>& phases, std::uint64_t epoch);

// Where a sample stands, with all that an engine needs to know.
PlacedSample place_of(const JobEpoch& epoch, std::uint64_t position);

}  // namespace millrace
