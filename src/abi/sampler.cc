// Samplers of include/millrace.h.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "abi/handles.h"
#include "abi/sampler_losses.h"
#include "abi/sampler_plan.h"
#include "loader/job_cursor.h"
#include "loader/loader_options.h"
#include "loader/step_digests.h"

struct mr_sampler {
  std::shared_ptr<millrace::DatasetHandle> dataset;
  millrace::JobCursor cursor;
  millrace::StepDigests digests;
  millrace::SamplerLosses losses;
  bool epoch_ended = false;
  // From the second step on: the first one has the store to itself. Null until then.
  std::unique_ptr<millrace::SamplerPlan> plan = {};
};

namespace millrace {
namespace {

// What one of several ranks has delivered is not what another goes on with.
DeliveryDigest digest_from(const RankChoice& choice, const LoaderState& state) {
  return choice.topology.groups() == 1 ? state.delivered : DeliveryDigest();
}

Result<std::unique_ptr<mr_sampler>> open_sampler(const mr_dataset& dataset, std::string_view json) {
  MR_ASSIGN_OR_RETURN(const OptionFields::Document document, parse_options(json));
  OptionFields fields(document, "");
  MR_ASSIGN_OR_RETURN(const RankChoice choice, take_rank_choice(fields));
  const LoaderStart start = take_start(fields);
  MR_RETURN_IF_ERROR(fields.finish());
  LoaderState state = dataset.handle->job()->first_state();
  state.phases = dataset.handle->phases();
  state.epoch = start.epoch;
  if (!start.state.empty()) {
    MR_ASSIGN_OR_RETURN(state, decode_loader_state(start.state));
  }
  MR_ASSIGN_OR_RETURN(JobCursor cursor, JobCursor::resume(dataset.handle->job(), choice, state));
  SamplerLosses losses(dataset.handle);
  losses.begin(state);
  return std::make_unique<mr_sampler>(mr_sampler{.dataset = dataset.handle,
                                                 .cursor = std::move(cursor),
                                                 .digests = StepDigests(digest_from(choice, state)),
                                                 .losses = std::move(losses)});
}

// Nothing at the end of an epoch.
Result<std::optional<std::size_t>> take_step(mr_sampler& sampler,
                                             std::span<std::uint64_t> positions) {
  if (positions.size() < sampler.cursor.choice().batch) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("there is room for {} positions, and a batch has {}",
                               positions.size(), sampler.cursor.choice().batch));
  }
  if (sampler.epoch_ended) {
    MR_RETURN_IF_ERROR(sampler.cursor.begin_next_epoch());
    sampler.digests = StepDigests(sampler.digests.last());
    sampler.epoch_ended = false;
  }
  if (sampler.cursor.at_end()) {
    sampler.epoch_ended = true;
    return std::optional<std::size_t>();
  }
  const bool is_first = sampler.plan == nullptr;
  const CursorStep step = sampler.cursor.take();
  sampler.losses.note_step(step.epoch);
  const std::vector<PlacedSample> places = places_of(*sampler.cursor.order(), step.share);
  for (std::size_t n = 0; n < places.size(); ++n)
    positions[n] = places[n].position;
  sampler.digests.take(step.epoch, places);
  if (is_first) {
    sampler.plan = std::make_unique<SamplerPlan>(sampler.dataset, sampler.cursor);
  } else {
    sampler.plan->note_step(places.size());
  }
  return std::optional(places.size());
}

// Goes on from a state with what was delivered before.
Status load(mr_sampler& sampler, const LoaderState& state, const DeliveryDigest& before) {
  MR_ASSIGN_OR_RETURN(sampler.cursor, JobCursor::resume(sampler.cursor.shared_job(),
                                                        sampler.cursor.choice(), state));
  sampler.digests = StepDigests(before);
  sampler.losses.begin(state);
  sampler.epoch_ended = false;
  sampler.plan.reset();
  return {};
}

}  // namespace
}  // namespace millrace

extern "C" {

int mr_sampler_open(mr_dataset* dataset, const char* options, mr_sampler** sampler,
                    mr_error** error) {
  auto opened = millrace::open_sampler(*dataset, options);
  if (!opened) return millrace::tell(opened.error(), error);
  *sampler = opened->release();
  return MR_OK;
}

void mr_sampler_close(mr_sampler* sampler) { delete sampler; }

int mr_sampler_next(mr_sampler* sampler, uint64_t* positions, size_t capacity, size_t* count,
                    mr_error** error) {
  const auto taken = millrace::take_step(*sampler, {positions, capacity});
  if (!taken) return millrace::tell(taken.error(), error);
  if (!*taken) return MR_END;
  *count = **taken;
  return MR_OK;
}

uint64_t mr_sampler_steps(const mr_sampler* sampler) { return sampler->cursor.steps(); }
uint64_t mr_sampler_step(const mr_sampler* sampler) { return sampler->cursor.step(); }
uint64_t mr_sampler_epoch(const mr_sampler* sampler) { return sampler->cursor.epoch(); }

int mr_sampler_set_epoch(mr_sampler* sampler, uint64_t epoch, mr_error** error) {
  millrace::LoaderState state = sampler->cursor.state(sampler->cursor.step());
  state.lost = sampler->losses.before(state);
  state.epoch = epoch;
  state.position = 0;
  return millrace::tell(millrace::load(*sampler, state, sampler->digests.last()), error);
}

int mr_sampler_rewind(mr_sampler* sampler, mr_error** error) {
  millrace::LoaderState state = sampler->cursor.state(0);
  state.lost = sampler->losses.before(state);
  const auto before = sampler->digests.behind(sampler->cursor, 0);
  return millrace::tell(millrace::load(*sampler, state, before), error);
}

int mr_sampler_state(mr_sampler* sampler, uint64_t step, char** state, mr_error** error) {
  if (step > sampler->cursor.steps()) {
    return millrace::tell({millrace::StatusCode::kInvalidArgument,
                           fmt::format("there is no step {} of {}", step, sampler->cursor.steps())},
                          error);
  }
  millrace::LoaderState saved = sampler->cursor.state(step);
  saved.delivered = sampler->digests.behind(sampler->cursor, step);
  saved.lost = sampler->losses.before(saved);
  return millrace::give_text(millrace::encode_loader_state(saved), state, error);
}

int mr_sampler_load_state(mr_sampler* sampler, const char* state, mr_error** error) {
  const auto decoded = millrace::decode_loader_state(state);
  if (!decoded) return millrace::tell(decoded.error(), error);
  const auto before = millrace::digest_from(sampler->cursor.choice(), *decoded);
  return millrace::tell(millrace::load(*sampler, *decoded, before), error);
}

int mr_sampler_set_shares(mr_sampler* sampler, const char* shares, mr_error** error) {
  const auto document = millrace::parse_options(shares);
  if (!document) return millrace::tell(document.error(), error);
  auto parsed = millrace::parse_shares(*document);
  if (!parsed) return millrace::tell(parsed.error(), error);
  sampler->plan.reset();
  return millrace::tell(sampler->cursor.change_shares(*std::move(parsed)), error);
}

int mr_sampler_digest(mr_sampler* sampler, char** digest, mr_error** error) {
  return millrace::give_text(sampler->digests.last().text(), digest, error);
}

}  // extern "C"
