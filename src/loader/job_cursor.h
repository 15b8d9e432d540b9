#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "loader/dealing.h"
#include "loader/loader_job.h"
#include "loader/loader_state.h"

namespace millrace {

// Which part of a job one rank has.
struct RankChoice {
  std::uint64_t rank = 0;
  Topology topology = {};
  std::uint64_t batch = 1;
  LastSteps last = LastSteps::kEven;
  // So many the job has: nothing of a later one is read or fetched ahead. 0: nobody knows.
  std::uint64_t epochs = 0;
};

// A step of one rank.
struct CursorStep {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;  // In the cursor's stretch of that epoch.
  Share share = {};
};

// One rank's way through the epochs of a job: from a state, step by step, to a state. Copies go
// their own ways, which is how somebody reads ahead.
//
// Takes microseconds, and no memory by samples. Needs one thread at a time.
class JobCursor {
 public:
  // At the beginning of an epoch. kInvalidArgument as Dealing::make(), and for a rank outside of
  // the world or an epoch behind the last.
  static Result<JobCursor> make(std::shared_ptr<const LoaderJob> job, const RankChoice& choice,
                                std::uint64_t epoch = 0);
  // Behind what a state says was delivered. kInvalidArgument also for a state of another job.
  static Result<JobCursor> resume(std::shared_ptr<const LoaderJob> job, const RankChoice& choice,
                                  const LoaderState& state);

  const LoaderJob& job() const { return *job_; }
  const std::shared_ptr<const LoaderJob>& shared_job() const { return job_; }
  const RankChoice& choice() const { return choice_; }
  const std::shared_ptr<const JobEpoch>& order() const { return order_; }
  const Dealing& dealing() const { return *dealing_; }
  std::uint64_t epoch() const { return epoch_; }
  // Of this stretch of the epoch, which begins where the cursor was made.
  std::uint64_t steps() const { return dealing_->steps(); }
  std::uint64_t step() const { return step_; }
  bool at_end() const { return step_ == steps(); }
  // Whether the job ends with this epoch.
  bool is_last_epoch() const { return choice_.epochs != 0 && epoch_ + 1 >= choice_.epochs; }

  // The samples of the next step; goes behind it. Not at the end.
  CursorStep take();
  // From the end on to the next epoch. Fails as make(), which it did not before for this job unless
  // its shares were changed.
  Status begin_next_epoch();

  // As of the beginning of a step up to steps().
  LoaderState state(std::uint64_t step) const;
  // Changes the mix soon behind the current step. kInvalidArgument as mix_counts().
  Status change_shares(std::vector<MixShare> shares);

 private:
  JobCursor(std::shared_ptr<const LoaderJob> job, const RankChoice& choice)
      : job_(std::move(job)), choice_(choice) {}
  Status begin(std::uint64_t epoch, std::uint64_t position);

  std::shared_ptr<const LoaderJob> job_;
  RankChoice choice_;
  std::vector<MixPhase> phases_;
  std::uint64_t epoch_ = 0;
  std::uint64_t step_ = 0;
  // Shared by copies: large enough to be worth it, and immutable.
  std::shared_ptr<const JobEpoch> order_;
  std::shared_ptr<const Dealing> dealing_;
};

// The samples of a share, which may go around the end of the epoch.
std::vector<PlacedSample> places_of(const JobEpoch& order, const Share& share);

}  // namespace millrace
