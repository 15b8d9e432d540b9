#pragma once

#include <cstdint>
#include <vector>

#include "loader/batch_engine.h"
#include "loader/plan_bounds.h"

namespace millrace {

// What a rank reads next, piece by piece, as it is announced to who fetches it: over the ends of
// epochs, so that the next one is planned before this one ends. Needs one thread at a time.
class ReadPlanner {
 public:
  // For what the cursor takes from here on. Plans about a GiB ahead, and `samples_min` in any case.
  ReadPlanner(const std::vector<SourceFacts>& sources, JobCursor from, std::uint64_t samples_min);

  std::uint64_t planned() const { return planned_; }
  // Whether there is something to announce when so many were read.
  bool is_due(std::uint64_t read) const { return !ended_ && planned_ < read + ahead_max_; }
  // The next of it: a part, so that the beginning is not waited for. Empty when nothing is due, and
  // from then on where the job cannot go on.
  std::vector<PlannedSample> take(std::uint64_t read);

 private:
  const std::uint64_t ahead_max_;
  const PlanBounds bounds_;
  JobCursor cursor_;
  std::uint64_t planned_ = 0;
  bool ended_ = false;
};

}  // namespace millrace
