#include "loader/job_cursor.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

// Far more changes than anybody makes in one epoch.
constexpr std::size_t kCursorPhasesMax = 64;

// Phases before the last one that says how the epoch begins are history.
void forget_ended(std::vector<MixPhase>& phases, std::uint64_t epoch) {
  while (phases.size() > 1 &&
         std::pair(phases[1].epoch, phases[1].position) <= std::pair(epoch, std::uint64_t{0})) {
    phases.erase(phases.begin());
  }
}

}  // namespace

Result<JobCursor> JobCursor::make(std::shared_ptr<const LoaderJob> job, const RankChoice& choice,
                                  std::uint64_t epoch) {
  JobCursor cursor(std::move(job), choice);
  cursor.phases_ = cursor.job_->first_state().phases;
  MR_RETURN_IF_ERROR(cursor.begin(epoch, 0));
  return cursor;
}

Result<JobCursor> JobCursor::resume(std::shared_ptr<const LoaderJob> job, const RankChoice& choice,
                                    const LoaderState& state) {
  MR_RETURN_IF_ERROR(check_loader_state(state, job->first_state()));
  JobCursor cursor(std::move(job), choice);
  cursor.phases_ = state.phases;
  MR_RETURN_IF_ERROR(cursor.begin(state.epoch, state.position));
  return cursor;
}

Status JobCursor::begin(std::uint64_t epoch, std::uint64_t position) {
  if (choice_.rank >= choice_.topology.world) {
    return {StatusCode::kInvalidArgument, fmt::format("rank {} is not below the world of {}",
                                                      choice_.rank, choice_.topology.world)};
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
  if (shares.size() != job_->choice().sources.size()) {
    return {StatusCode::kInvalidArgument,
            fmt::format("{} shares for {} datasets", shares.size(), job_->choice().sources.size())};
  }
  std::vector<std::uint64_t> samples;
  for (std::size_t n = 0; n < shares.size(); ++n)
    samples.push_back(job_->source_samples(n));
  const std::uint64_t epoch_samples = job_->choice().order.epoch_samples;
  MR_ASSIGN_OR_RETURN([[maybe_unused]] const auto counts,
                      mix_counts(shares, samples, epoch_samples));
  const std::uint64_t position = std::min(dealing_->position(step_), order_->samples());
  const JobOrder& current = order_->order(std::min(position, order_->samples() - 1));
  MixPhase changed = current.change(position, std::move(shares));
  std::vector<MixPhase> phases = phases_;
  // A change that was asked for and has not begun gives way to this one.
  std::erase_if(phases, [&](const MixPhase& phase) {
    return std::pair(phase.epoch, phase.position) > std::pair(epoch_, current.first());
  });
  forget_ended(phases, epoch_);
  if (phases.size() >= kCursorPhasesMax) {
    return {StatusCode::kResourceExhausted, "the shares were changed too often in this epoch"};
  }
  phases.push_back(std::move(changed));
  MR_ASSIGN_OR_RETURN(JobEpoch order, job_->epoch(phases, epoch_));
  phases_ = std::move(phases);
  order_ = std::make_shared<const JobEpoch>(std::move(order));
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
