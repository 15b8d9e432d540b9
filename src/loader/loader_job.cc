#include "loader/loader_job.h"

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

}  // namespace

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
                             .split = split_text(chosen),
                             .samples = source.layout->samples()});
    phase.taken.push_back(0);
    phase.shares.push_back(chosen.share);
    job->sources_.push_back(std::move(source));
  }
  job->choice_ = std::move(choice);
  MR_ASSIGN_OR_RETURN(const JobEpoch first, job->epoch(state.phases, 0));
  job->samples_ = first.samples();
  return job;
}

PlacedSample place_of(const JobEpoch& epoch, std::uint64_t position) {
  const JobOrder::Place place = epoch.at(position);
  return {.position = position,
          .source = place.source,
          .sample = place.sample,
          .seed = epoch.seed_at(position)};
}

}  // namespace millrace
