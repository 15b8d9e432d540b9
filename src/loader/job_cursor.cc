#include "loader/job_cursor.h"

#include <cassert>
#include <utility>

#include <fmt/format.h>

namespace millrace {

Result<JobCursor> JobCursor::make(std::shared_ptr<const LoaderJob> job, const RankChoice& choice,
                                  std::uint64_t epoch) {
  JobCursor cursor(std::move(job), choice);
  cursor.phases_ = cursor.job_->first_state().phases;
  MR_RETURN_IF_ERROR(cursor.begin(epoch, 0));
  return cursor;
}

Result<JobCursor> JobCursor::resume(std::shared_ptr<const LoaderJob> job, const RankChoice& choice,
                                    const LoaderState& state) {
  JobCursor cursor(std::move(job), choice);
  MR_ASSIGN_OR_RETURN(cursor.phases_, cursor.job_->phases_from(state));
  MR_RETURN_IF_ERROR(cursor.begin(state.epoch, state.position));
  return cursor;
}

Status JobCursor::begin(std::uint64_t epoch, std::uint64_t position) {
  if (choice_.rank >= choice_.topology.world) {
    return {StatusCode::kInvalidArgument, fmt::format("rank {} is not below the world of {}",
                                                      choice_.rank, choice_.topology.world)};
  }
  if (choice_.epochs != 0 && epoch >= choice_.epochs) {
    return {
        StatusCode::kInvalidArgument,
        fmt::format("the job has {} epochs, as 'epochs' says, and they are over", choice_.epochs)};
  }
  MR_ASSIGN_OR_RETURN(JobEpoch order, job_->epoch(phases_, epoch));
  MR_ASSIGN_OR_RETURN(Dealing dealing, Dealing::make({.samples = order.samples(),
                                                      .start = position,
                                                      .topology = choice_.topology,
                                                      .batch = choice_.batch,
                                                      .last = choice_.last}));
  order_ = std::make_shared<const JobEpoch>(std::move(order));
  dealing_ = std::make_shared<const Dealing>(std::move(dealing));
  epoch_ = epoch;
  step_ = 0;
  return {};
}

CursorStep JobCursor::take() {
  assert(!at_end());
  const std::uint64_t number = step_++;
  return {.epoch = epoch_, .number = number, .share = dealing_->share(number, choice_.rank)};
}

Status JobCursor::begin_next_epoch() {
  assert(at_end());
  forget_ended(phases_, epoch_ + 1);
  return begin(epoch_ + 1, 0);
}

LoaderState JobCursor::state(std::uint64_t step) const {
  assert(step <= steps());
  LoaderState state = job_->first_state();
  state.phases = phases_;
  const bool ended = step == steps();
  state.epoch = ended ? epoch_ + 1 : epoch_;
  state.position = ended ? 0 : dealing_->position(step);
  return state;
}

Status JobCursor::change_shares(std::vector<MixShare> shares) {
  JobCursor changed = *this;
  MR_ASSIGN_OR_RETURN(
      changed.phases_,
      job_->changed_phases(phases_, epoch_, dealing_->position(step_), std::move(shares)));
  if (step_ == 0) {
    // Before its first step an epoch may also become longer or shorter.
    MR_RETURN_IF_ERROR(changed.begin(epoch_, dealing_->position(0)));
  } else {
    MR_ASSIGN_OR_RETURN(JobEpoch order, job_->epoch(changed.phases_, epoch_));
    changed.order_ = std::make_shared<const JobEpoch>(std::move(order));
  }
  *this = std::move(changed);
  return {};
}

std::vector<PlacedSample> places_of(const JobEpoch& order, const Share& share) {
  std::vector<PlacedSample> places;
  places.reserve(share.count);
  for (std::uint64_t n = 0; n < share.count; ++n)
    places.push_back(place_of(order, share.at(n) % order.samples()));
  return places;
}

}  // namespace millrace
