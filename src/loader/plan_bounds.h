#pragma once

#include <cstdint>

#include "loader/job_cursor.h"
#include "loader/planned_sample.h"

namespace millrace {

// How much around a sample a node may fetch with it, so that several nodes with caches of their own
// fetch no byte twice between them.
//
// 1. One node may fetch everything: it reads all of it in this epoch, or in the next.
// 2. Nodes that keep to their lanes (windowed_order.h) share no block: each fetches its own blocks.
// 3. Where a job goes on in the middle of a window, some samples of its blocks were read before and
//    are not read again: samples are fetched alone until a window begins.
// 4. Nodes that share blocks, because their number does not divide 48 or the order has no blocks,
//    fetch samples alone.
//
// Immutable, safe from any thread.
class PlanBounds {
 public:
  // For what the cursor's rank takes from here on.
  explicit PlanBounds(const JobCursor& from);

  // The sample at a position of an epoch of the job.
  PlannedSample at(const JobEpoch& order, std::uint64_t position) const;

 private:
  enum class Bounds : std::uint8_t { kNone, kBlock, kSample };
  static Bounds bounds_of(const Topology& topology);

  const Bounds bounds_;
  // Where the cursor was.
  const std::uint64_t epoch_;
  const std::uint64_t position_;
};

}  // namespace millrace
