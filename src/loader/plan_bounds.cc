#include "loader/plan_bounds.h"

namespace millrace {

PlanBounds::PlanBounds(const JobCursor& from)
    : bounds_(bounds_of(from.choice().topology)),
      epoch_(from.epoch()),
      position_(from.dealing().position(from.step())) {}

PlanBounds::Bounds PlanBounds::bounds_of(const Topology& topology) {
  const std::uint64_t groups = topology.groups();
  const std::uint64_t groups_per_node = topology.ranks_per_node / topology.replication;
  if (groups <= groups_per_node || groups == 1) return Bounds::kNone;
  if (groups_per_node == 0) return kOrderLanes % groups == 0 ? Bounds::kBlock : Bounds::kSample;
  if (groups % groups_per_node != 0) return Bounds::kSample;
  return kOrderLanes % (groups / groups_per_node) == 0 ? Bounds::kBlock : Bounds::kSample;
}

PlannedSample PlanBounds::at(const JobEpoch& order, std::uint64_t position) const {
  const JobOrder::Place place = order.at(position);
  PlannedSample planned{.source = place.source, .sample = place.sample};
  if (bounds_ == Bounds::kNone) return planned;
  planned.first = place.sample;
  planned.last = place.sample;
  if (bounds_ == Bounds::kSample) return planned;
  const OrderSurroundings around = order.order(position).surroundings(position);
  const bool was_begun =
      position_ > 0 && order.epoch() == epoch_ && position < position_ + around.age_max;
  if (!was_begun) {
    planned.first = around.first;
    planned.last = around.last;
  }
  return planned;
}

}  // namespace millrace
