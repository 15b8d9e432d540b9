#include "loader/read_planner.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

constexpr std::uint64_t kPlannedBytes = kGiB;
constexpr std::uint64_t kPlannedSamplesMax = 65536;
constexpr std::uint64_t kPlanStretchSamples = 2048;

std::uint64_t samples_ahead(const std::vector<SourceFacts>& sources, std::uint64_t samples_min) {
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  for (const SourceFacts& source : sources) {
    samples += source.samples;
    bytes += source.bytes;
  }
  const std::uint64_t sample_bytes =
      std::max<std::uint64_t>(bytes / std::max<std::uint64_t>(samples, 1), 1);
  return std::clamp<std::uint64_t>(kPlannedBytes / sample_bytes,
                                   std::min(samples_min, kPlannedSamplesMax), kPlannedSamplesMax);
}

}  // namespace

ReadPlanner::ReadPlanner(const std::vector<SourceFacts>& sources, JobCursor from,
                         std::uint64_t samples_min)
    : ahead_max_(samples_ahead(sources, samples_min)), bounds_(from), cursor_(std::move(from)) {}

std::vector<PlannedSample> ReadPlanner::take(std::uint64_t read) {
  std::vector<PlannedSample> samples;
  while (samples.size() < kPlanStretchSamples && is_due(read)) {
    if (cursor_.at_end()) {
      ended_ = !cursor_.begin_next_epoch().ok() || cursor_.at_end();
      continue;
    }
    const JobEpoch& order = *cursor_.order();
    const Share share = cursor_.take().share;
    for (std::uint64_t n = 0; n < share.count; ++n)
      samples.push_back(bounds_.at(order, share.at(n) % order.samples()));
    planned_ += share.count;
  }
  return samples;
}

}  // namespace millrace
