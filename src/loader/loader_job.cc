#include "loader/loader_job.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

// Two seeds make two splits: a state has to tell them apart.
std::string split_text(const SourceChoice& choice) {
  if (!choice.split) return {};
  if (choice.split_seed == 0) return choice.split->text();
  return fmt::format("{}, seed {}", choice.split->text(), choice.split_seed);
}

// Far more changes than anybody makes in one epoch.
constexpr std::size_t kPhasesMax = 64;

}  // namespace

void forget_ended(std::vector<MixPhase>& phases, std::uint64_t epoch) {
  while (phases.size() > 1 &&
         std::pair(phases[1].epoch, phases[1].position) <= std::pair(epoch, std::uint64_t{0})) {
    phases.erase(phases.begin());
  }
}

Result<std::shared_ptr<const LoaderJob>> LoaderJob::make(JobChoice choice,
                                                         const std::vector<SourceFacts>& facts) {
  std::shared_ptr<LoaderJob> job(new LoaderJob());
  LoaderState& state = job->first_state_;
  state.mode = choice.order.mode;
  state.seed = choice.order.seed;
  state.window_rows = choice.order.window_rows;
  state.epoch_samples = choice.order.epoch_samples;
  MixPhase& phase = state.phases.emplace_back();
  for (std::size_t n = 0; n < facts.size(); ++n) {
    const SourceChoice& chosen = choice.sources[n];
    JobSource source{.content_digest = facts[n].content_digest, .layout = nullptr};
    std::vector<SampleStretch> stretches = facts[n].stretches;
    if (chosen.split) {
      source.split.emplace(
          *chosen.split,
          OrderSeed{.content_digest = facts[n].content_digest, .seed = chosen.split_seed},
          facts[n].samples);
      stretches = source.split->stretches(stretches);
    }
    source.layout = std::make_shared<const BlockLayout>(stretches);
    if (source.layout->samples() == 0) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("dataset {} ('{}') has no sample{}", n, chosen.name,
                                 chosen.split ? " in this part of it" : ""));
    }
    state.sources.push_back({.content_digest = facts[n].content_digest,
                             .reader = facts[n].reader,
                             .directory = chosen.directory,
                             .split = split_text(chosen),
                             .samples = source.layout->samples()});
    phase.taken.push_back(0);
    phase.shares.push_back(chosen.share);
    state.shares.push_back(chosen.share);
    job->sources_.push_back(std::move(source));
  }
  job->choice_ = std::move(choice);
  MR_ASSIGN_OR_RETURN(const JobEpoch first, job->epoch(state.phases, 0));
  job->samples_ = first.samples();
  return job;
}

Result<std::vector<MixPhase>> LoaderJob::changed_phases(std::vector<MixPhase> phases,
                                                        std::uint64_t epoch, std::uint64_t position,
                                                        std::vector<MixShare> shares) const {
  if (shares.size() != sources_.size()) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("{} shares for {} datasets", shares.size(), sources_.size()));
  }
  std::vector<std::uint64_t> samples;
  for (std::size_t n = 0; n < shares.size(); ++n)
    samples.push_back(source_samples(n));
  MR_ASSIGN_OR_RETURN([[maybe_unused]] const auto counts,
                      mix_counts(shares, samples, choice_.order.epoch_samples));
  MR_ASSIGN_OR_RETURN(const JobEpoch order, this->epoch(phases, epoch));
  position = std::min(position, order.samples());
  const JobOrder& current = order.order(std::min(position, order.samples() - 1));
  // A change that was asked for and has not begun gives way to this one.
  std::erase_if(phases, [&](const MixPhase& phase) {
    return std::pair(phase.epoch, phase.position) > std::pair(epoch, current.first());
  });
  forget_ended(phases, epoch);
  if (phases.size() >= kPhasesMax) {
    return failure(StatusCode::kResourceExhausted,
                   fmt::format("the weights can be changed {} times in an epoch, and were: change "
                               "them again in the next one",
                               kPhasesMax - 1));
  }
  phases.push_back(current.change(position, std::move(shares)));
  return phases;
}

Result<std::vector<MixPhase>> LoaderJob::phases_from(const LoaderState& state) const {
  MR_RETURN_IF_ERROR(check_loader_state(state, first_state_));
  const std::vector<MixShare>& wanted = first_state_.shares;
  // Shares that were changed while the job ran hold on, unless others are chosen now.
  const bool agrees = state.shares.empty() || wanted == state.shares ||
                      (!state.phases.empty() && wanted == state.phases.back().shares);
  if (agrees) return state.phases;
  return changed_phases(state.phases, state.epoch, state.position, wanted);
}

PlacedSample place_of(const JobEpoch& epoch, std::uint64_t position) {
  const JobOrder::Place place = epoch.at(position);
  return {.position = position,
          .source = place.source,
          .sample = place.sample,
          .seed = epoch.seed_at(position)};
}

}  // namespace millrace
