#include "loader/dealing.h"

#include <algorithm>
#include <cassert>
#include <string>

#include <fmt/format.h>

namespace millrace {

namespace {

// Far above any job, and low enough that products of positions do not overflow.
constexpr std::uint64_t kStepSamplesMax = std::uint64_t{1} << 40;
constexpr std::uint64_t kEpochSamplesMax = std::uint64_t{1} << 62;

std::unexpected<Status> cannot_deal(std::string message) {
  return failure(StatusCode::kInvalidArgument, std::move(message));
}

Status check_topology(const Topology& topology) {
  if (topology.world == 0 || topology.world > kStepSamplesMax) {
    return {StatusCode::kInvalidArgument, fmt::format("a world of {} ranks cannot be: give 1 to {}",
                                                      topology.world, kStepSamplesMax)};
  }
  if (topology.ranks_per_node == 0 || topology.world % topology.ranks_per_node != 0) {
    return {StatusCode::kInvalidArgument,
            fmt::format("{} ranks cannot be {} on each node: ranks_per_node must divide the world "
                        "size",
                        topology.world, topology.ranks_per_node)};
  }
  if (topology.replication == 0 || topology.world % topology.replication != 0) {
    return {StatusCode::kInvalidArgument,
            fmt::format("{} ranks cannot be groups of {} that see the same samples: replication "
                        "must divide the world size",
                        topology.world, topology.replication)};
  }
  return {};
}

}  // namespace

Result<Dealing> Dealing::make(const DealingOptions& options) {
  MR_RETURN_IF_ERROR(check_topology(options.topology));
  const std::uint64_t groups = options.topology.groups();
  if (options.batch == 0 || options.batch > kStepSamplesMax / groups) {
    return cannot_deal(fmt::format("a batch cannot have {} samples: give a batch size from 1 to {}",
                                   options.batch, kStepSamplesMax / groups));
  }
  if (options.samples > kEpochSamplesMax) {
    return cannot_deal(fmt::format("an epoch of {} samples", options.samples));
  }
  if (options.samples < groups) {
    return cannot_deal(fmt::format(
        "{} samples cannot be dealt to {} ranks, of which each needs at least one: use fewer ranks",
        options.samples, groups));
  }
  if (options.start > options.samples) {
    return cannot_deal(fmt::format("position {} is behind the end of an epoch of {} samples",
                                   options.start, options.samples));
  }
  const Dealing dealing(options);
  if (dealing.steps_ == 0 && options.start == 0) {
    return cannot_deal(fmt::format(
        "{} samples do not fill one step of {} ranks with batches of {}: without drop_last the "
        "step would be smaller",
        options.samples, groups, options.batch));
  }
  return dealing;
}

Dealing::Dealing(const DealingOptions& options)
    : options_(options), groups_(options.topology.groups()) {
  const std::uint64_t step_samples = groups_ * options.batch;
  const std::uint64_t rest = options.samples - options.start;
  const std::uint64_t steps_down = rest / step_samples;
  const std::uint64_t steps_up = steps_down + (rest % step_samples == 0 ? 0 : 1);
  steps_ = options.last == LastSteps::kDrop ? steps_down : steps_up;
  full_steps_ = steps_;
  end_ = options.start + steps_ * step_samples;
  if (options.last == LastSteps::kDrop) dropped_ = options.samples - end_;
  if (options.last == LastSteps::kPad) padded_ = end_ - options.samples;
  if (options.last != LastSteps::kEven || steps_down == steps_up) return;

  full_steps_ = steps_ - std::min<std::uint64_t>(steps_, 2);
  end_ = options.samples;
  const std::uint64_t uneven = rest - full_steps_ * step_samples;
  // A half, but at least one for each group: with batches of 1 the halves would not have that.
  first_of_last_ = steps_ == 1 ? uneven : std::max((uneven + 1) / 2, std::min(uneven, groups_));
}

std::uint64_t Dealing::position(std::uint64_t step) const {
  assert(step <= steps_);
  if (step == steps_) return end_;
  const std::uint64_t full = std::min(step, full_steps_);
  const std::uint64_t position = options_.start + full * groups_ * options_.batch;
  return step == full ? position : position + first_of_last_;
}

std::uint64_t Dealing::residue(std::uint64_t rank) const {
  const std::uint64_t group = rank / options_.topology.replication;
  const std::uint64_t groups_per_node =
      options_.topology.ranks_per_node / options_.topology.replication;
  // Groups that lie across nodes keep to no node's lanes.
  if (groups_per_node == 0 || groups_ % groups_per_node != 0) return group;
  const std::uint64_t nodes = groups_ / groups_per_node;
  return group % groups_per_node * nodes + group / groups_per_node;
}

Share Dealing::share(std::uint64_t step, std::uint64_t rank) const {
  assert(step < steps_ && rank < options_.topology.world);
  const std::uint64_t begin = position(step);
  const std::uint64_t end = position(step + 1);
  // The first position from `begin` on that is this group's.
  const std::uint64_t first = begin + (residue(rank) + groups_ - begin % groups_) % groups_;
  const std::uint64_t count = first < end ? (end - first + groups_ - 1) / groups_ : 0;
  return {.first = first, .stride = groups_, .count = count};
}

std::uint64_t Dealing::empty_shares() const {
  if (steps_ == 0) return 0;
  // Only the last step can have fewer positions than groups.
  const std::uint64_t last = position(steps_) - position(steps_ - 1);
  return last < groups_ ? groups_ - last : 0;
}

}  // namespace millrace
