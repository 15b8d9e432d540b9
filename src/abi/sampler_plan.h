#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "abi/dataset_handle.h"
#include "loader/batch_engine.h"
#include "loader/read_planner.h"

namespace millrace {

// Tells the daemon what a sampler deals, so that it is fetched in that order and before the workers
// who read it ask. A hint: nothing fails. It has no thread, so that a process with a sampler can be
// forked; a child leaves its parent's alone.
//
// Needs one thread at a time; blocks for a moment.
class SamplerPlan {
 public:
  // For what the cursor deals from here on.
  SamplerPlan(std::shared_ptr<DatasetHandle> dataset, const JobCursor& from);
  ~SamplerPlan();
  SamplerPlan(const SamplerPlan&) = delete;
  SamplerPlan& operator=(const SamplerPlan&) = delete;

  // One more step was dealt.
  void note_step(std::uint64_t samples);

 private:
  bool is_ours() const;

  const pid_t process_;
  const std::shared_ptr<DatasetHandle> dataset_;
  const std::uint64_t unread_max_;
  ReadPlanner planner_;
  std::uint64_t dealt_ = 0;
  std::shared_ptr<BatchEngine> engine_;
  std::unique_ptr<BatchPlan> plan_;
};

}  // namespace millrace
