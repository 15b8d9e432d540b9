#pragma once

#include <cstdint>
#include <memory>
#include <set>

#include "abi/dataset_handle.h"
#include "base/clock.h"
#include "loader/loader_state.h"
#include "loader/lost_places.h"

namespace millrace {

// What others could not have of a sampler's steps. They tell who reads for them, and that one is
// asked: for each state, at the end of each epoch, and now and then, since a daemon that is killed
// forgets it. Nothing is asked where a sample that cannot be had ends the epoch.
//
// Needs one thread at a time; blocks for a moment.
class SamplerLosses {
 public:
  explicit SamplerLosses(std::shared_ptr<DatasetHandle> dataset);

  // Goes on from a state, with what it says was lost before.
  void begin(const LoaderState& state);
  // Another step is dealt, of this epoch; all steps of the epochs before it have been read.
  void note_step(std::uint64_t epoch);
  // All that was lost before the place of a state.
  LostSamples before(const LoaderState& state);

 private:
  void ask();
  LostSamples known_before(const LostPlace& end) const;

  const std::shared_ptr<DatasetHandle> dataset_;
  TimePoint asked_;
  // Counts what lies before `begin_`; the rest is in `places_`.
  LostSamples counted_ = {};
  LostPlace begin_ = {};
  std::set<LostPlace> places_ = {};
};

}  // namespace millrace
