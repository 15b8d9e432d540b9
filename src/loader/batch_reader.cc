#include "loader/batch_reader.h"

#include <algorithm>
#include <map>
#include <set>
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

bool has_failed(const BatchAnswer& answer, const PlacedSample& place) {
  return std::ranges::any_of(answer.failed,
                             [&](const SampleFailure& failed) { return failed.place == place; });
}

// The longest row of failures that reaches into these places, in the order of the job.
std::uint64_t note_row(const BatchAnswer& answer, const std::vector<PlacedSample>& places,
                       FailureRow& row) {
  std::uint64_t longest = 0;
  for (const PlacedSample& place : places) {
    if (has_failed(answer, place)) {
      longest = std::max(longest, row.add(1));
    } else {
      row.end();
    }
  }
  return longest;
}

// Moves each place that failed on to the next sample behind it, and returns how far the furthest is
// from where it stood. `distances` has that by position, which may be in a batch more than once.
std::uint64_t substitute(const JobEpoch& order, const BatchAnswer& answer,
                         std::vector<PlacedSample>& places,
                         std::map<std::uint64_t, std::uint64_t>& distances) {
  std::uint64_t furthest = 0;
  std::set<std::uint64_t> moved;
  for (PlacedSample& place : places) {
    if (!has_failed(answer, place)) continue;
    std::uint64_t& distance = distances[place.position];
    if (moved.insert(place.position).second) ++distance;
    furthest = std::max(furthest, distance);
    place = next_place(order, place, distance);
  }
  return furthest;
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
      if (!places.empty() && read.losses.empty()) row.end();
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
    // Those that stand in for others are not where they stand in the order: for them it counts how
    // far they were looked for.
    std::uint64_t failures = distances.empty() ? note_row(answer, places, row) : 0;
    std::uint64_t failures_max = policy.failures_max;
    if (policy.action == FaultAction::kSkip) {
      std::erase_if(places, [&](const PlacedSample& place) { return has_failed(answer, place); });
    } else {
      failures = std::max(failures, substitute(order, answer, places, distances));
      failures_max = std::min(failures_max, order.samples());  // There are no others.
    }
    if (failures >= failures_max) {
      engine.report({.losses = std::move(read.losses)});
      return failure(describe_failure(answer.failed.back())
                         .with_context(fmt::format("{} samples in a row cannot be had", failures)));
    }
  }
}

}  // namespace millrace
