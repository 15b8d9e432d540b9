#include "abi/sampler_losses.h"

#include <utility>

#include "base/log.h"

namespace millrace {
namespace {

// So much a killed daemon takes along.
constexpr Duration kAskPeriod = std::chrono::seconds(1);
// The training waits meanwhile.
constexpr Duration kAskTimeout = std::chrono::seconds(2);

}  // namespace

SamplerLosses::SamplerLosses(std::shared_ptr<DatasetHandle> dataset)
    : dataset_(std::move(dataset)), asked_(system_clock().now()) {}

void SamplerLosses::begin(const LoaderState& state) {
  counted_ = state.lost;
  begin_ = {.epoch = state.epoch, .position = state.position};
  places_.clear();
}

void SamplerLosses::note_step(std::uint64_t epoch) {
  const LostPlace epoch_begin{.epoch = epoch};
  const bool is_next = epoch > begin_.epoch;
  if (is_next || system_clock().now() - asked_ >= kAskPeriod) ask();
  if (!is_next) return;
  counted_ = known_before(epoch_begin);
  begin_ = epoch_begin;
  places_.erase(places_.begin(), places_.lower_bound(begin_));
}

LostSamples SamplerLosses::before(const LoaderState& state) {
  ask();
  return known_before({.epoch = state.epoch, .position = state.position});
}

LostSamples SamplerLosses::known_before(const LostPlace& end) const {
  LostSamples lost = counted_;
  for (auto place = places_.begin(); place != places_.end() && *place < end; ++place)
    lost.add({.source = place->source, .sample = place->sample});
  return lost;
}

void SamplerLosses::ask() {
  if (dataset_->options().faults.action == FaultAction::kRaise) return;
  asked_ = system_clock().now();
  const auto engine = dataset_->engine();
  auto lost = engine ? (*engine)->lost(dataset_->context(asked_ + kAskTimeout))
                     : Result<std::vector<LostPlace>>(failure(engine.error()));
  if (!lost) {
    log_warn("a sampler does not know which samples were lost",
             {{"error", lost.error().to_string()}});
    return;
  }
  for (const LostPlace& place : *lost) {
    if (place >= begin_) places_.insert(place);
  }
}

}  // namespace millrace
