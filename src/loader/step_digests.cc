#include "loader/step_digests.h"

#include <cassert>

namespace millrace {
namespace {

// More steps than any DataLoader asks for ahead.
constexpr std::size_t kStepsKept = 4096;

void add_places(DeliveryDigest& digest, std::uint64_t epoch,
                const std::vector<PlacedSample>& places) {
  for (const PlacedSample& place : places)
    digest.add(epoch, place.position, place.source, place.sample);
}

}  // namespace

void StepDigests::take(std::uint64_t epoch, const std::vector<PlacedSample>& places) {
  DeliveryDigest next = recent_.back();
  add_places(next, epoch, places);
  recent_.push_back(next);
  if (recent_.size() > kStepsKept) recent_.pop_front();
}

DeliveryDigest StepDigests::behind(const JobCursor& cursor, std::uint64_t step) const {
  assert(step <= cursor.steps());
  const std::uint64_t taken = cursor.step();
  if (step <= taken && taken - step < recent_.size()) {
    return recent_[recent_.size() - 1 - (taken - step)];
  }
  const bool is_ahead = step > taken;
  DeliveryDigest digest = is_ahead ? recent_.back() : start_;
  for (std::uint64_t n = is_ahead ? taken : 0; n < step; ++n) {
    const Share share = cursor.dealing().share(n, cursor.choice().rank);
    add_places(digest, cursor.epoch(), places_of(*cursor.order(), share));
  }
  return digest;
}

}  // namespace millrace
