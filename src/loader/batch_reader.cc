#include "loader/batch_reader.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

Status describe_failure(const SampleFailure& failed) {
  return failed.why.with_context(
      fmt::format("sample {} of dataset {}{}", failed.place.sample, failed.place.source,
                  failed.key.empty() ? "" : fmt::format(" ('{}')", failed.key)));
}

// The place that stands in for one that failed: what follows it in the order.
PlacedSample next_place(const JobEpoch& order, const PlacedSample& wanted, std::uint64_t distance) {
  const JobOrder::Place place = order.at((wanted.position + distance) % order.samples());
  return {.position = wanted.position,
          .source = place.source,
          .sample = place.sample,
          .seed = wanted.seed};
}

}  // namespace

Result<ReadBatch> read_batch(const RequestContext& context, BatchEngine& engine,
                             const JobEpoch& order, std::vector<PlacedSample> places,
                             const FaultPolicy& policy, FailureRow& row) {
  ReadBatch read;
  // By position: how far behind it the sample is that stands in for it now.
  std::map<std::uint64_t, std::uint64_t> distances;
  for (;;) {
    MR_ASSIGN_OR_RETURN(BatchAnswer answer, engine.read(context, order.epoch(), places));
    if (answer.failed.empty()) {
      if (!places.empty()) row.end();
      read.batch = std::move(answer.batch);
      return read;
    }
    for (const SampleFailure& failed : answer.failed) {
      read.losses.push_back({.epoch = order.epoch(), .failure = failed, .action = policy.action});
    }
    if (policy.action == FaultAction::kRaise) {
      engine.report({.losses = std::move(read.losses)});
      return failure(describe_failure(answer.failed[0]));
    }
    if (answer.failed.size() < places.size()) row.end();
    const std::uint64_t failures = row.add(answer.failed.size());
    if (failures >= policy.failures_max) {
      engine.report({.losses = std::move(read.losses)});
      return failure(describe_failure(answer.failed.back())
                         .with_context(fmt::format("{} samples in a row cannot be had", failures)));
    }
    const auto has_failed = [&](const PlacedSample& place) {
      return std::ranges::any_of(
          answer.failed, [&](const SampleFailure& failed) { return failed.place == place; });
    };
    if (policy.action == FaultAction::kSkip) {
      std::erase_if(places, has_failed);
      continue;
    }
    for (PlacedSample& place : places) {
      if (!has_failed(place)) continue;
      const std::uint64_t distance = ++distances[place.position];
      if (distance >= order.samples()) return failure(describe_failure(answer.failed[0]));
      place = next_place(order, place, distance);
    }
  }
}

}  // namespace millrace
