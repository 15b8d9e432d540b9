#pragma once

#include <cstdint>
#include <deque>

#include "loader/delivery_digest.h"
#include "loader/job_cursor.h"

namespace millrace {

// The digests behind each step of a cursor's stretch of an epoch, for who hands steps out before
// they are used: what was used is a state of an earlier step.
//
// 1. recent_ is never empty. Its last one is behind all steps that were taken, the one before that
//    behind one step less, and so on.
// 2. start_ is behind none of them: it has what was delivered before the stretch.
//
// The last 4096 are kept, so memory does not grow with the steps. Needs one thread at a time.
class StepDigests {
 public:
  explicit StepDigests(const DeliveryDigest& before = {}) : start_(before), recent_{before} {}

  // Behind all steps that were taken.
  const DeliveryDigest& last() const { return recent_.back(); }
  // One more step is taken: these are its samples.
  void take(std::uint64_t epoch, const std::vector<PlacedSample>& places);
  // Behind so many steps of `cursor`, which is the one whose steps were taken; at most its steps().
  // One that is not kept, or is still to come, is found by adding its samples up.
  DeliveryDigest behind(const JobCursor& cursor, std::uint64_t step) const;

 private:
  DeliveryDigest start_;
  std::deque<DeliveryDigest> recent_;
};

}  // namespace millrace
