#include "loader/lost_places.h"

namespace millrace {

void LostPlaces::add(const std::vector<SampleLoss>& losses) {
  for (const SampleLoss& loss : losses) {
    if (loss.action == FaultAction::kRaise) continue;
    const PlacedSample& place = loss.failure.place;
    places_.insert({.epoch = loss.epoch,
                    .position = place.position,
                    .source = place.source,
                    .sample = place.sample});
    if (places_.size() > kPlacesMax) places_.erase(places_.begin());
  }
}

}  // namespace millrace
