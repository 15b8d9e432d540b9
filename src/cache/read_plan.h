#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/strong_type.h"
#include "cache/eviction_block.h"
#include "cache/read_plan_stretch.h"

namespace millrace {

// Never reused, so that a late call for a withdrawn plan finds nothing.
using PlanId = StrongType<std::uint64_t, struct PlanIdTag>;

// When a block is read next: the read's position in its plan, and how many bytes the job reads
// before it.
struct NextUse {
  PlanId plan;
  std::uint64_t position = 0;
  std::uint64_t distance_bytes = 0;
};

// A read that a job has yet to make.
struct UpcomingRead {
  std::uint64_t position = 0;
  PlannedBlock read;
};

struct ReadPlanLimits {
  std::size_t plans_max = 64;  // next_use() asks each of them.
  std::uint64_t memory_bytes_max = 256 * kMiB;
};

// What jobs have said about their future reads. A plan is a sequence of reads, counted from 0 over
// all its stretches, and the position that its job has reached. Reads before the position are
// consumed, and a stretch goes when its last read is.
//
// Used under the cache's lock. Nothing here waits; only advance() takes time in proportion to what
// it is told.
class ReadPlans {
 public:
  explicit ReadPlans(ReadPlanLimits limits = {}) : limits_(limits) {}

  // A new plan at position 0. kResourceExhausted when plans or memory are at their limit: then the
  // job reads like one without a plan.
  Result<PlanId> announce(ReadPlanStretch reads);
  // Appends reads, usually the next epoch before this one ends. kNotFound, kResourceExhausted.
  Status extend(PlanId plan, ReadPlanStretch reads);
  // The job has consumed everything before `position`. Returns the bytes of what it read since the
  // last report. Calls `changed` for each block whose next use by this plan is another one now,
  // after the change. A position that was passed already changes nothing: reports of concurrent
  // readers may overtake each other. kNotFound, kInvalidArgument for a position past the end.
  Result<std::uint64_t> advance(PlanId plan, std::uint64_t position,
                                const std::function<void(BlockId)>& changed);
  // False when there is no such plan.
  bool withdraw(PlanId plan);

  // The nearest use by any plan; nothing when no plan uses the block.
  std::optional<NextUse> next_use(BlockId block) const;
  // The same, where the first use by `reader` does not count: its job makes that read just now and
  // has not reported it.
  std::optional<NextUse> next_use_after_read(BlockId block, PlanId reader) const;
  // How far a position is from where the plan's job is. Nothing when it is consumed or past the
  // end, or there is no such plan.
  std::optional<std::uint64_t> distance_bytes(PlanId plan, std::uint64_t position) const;

  // For prefetching: reads from `from` on (or from the job's position, if that is later) that start
  // less than `bytes_ahead` ahead of the job; at most `count_max`, in order.
  std::vector<UpcomingRead> upcoming(PlanId plan, std::uint64_t from, std::uint64_t bytes_ahead,
                                     std::size_t count_max) const;
  // Where the job is. Nothing when there is no such plan.
  std::optional<std::uint64_t> position(PlanId plan) const;

  std::size_t size() const { return plans_.size(); }
  std::uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  struct PlacedStretch {
    std::uint64_t first_position;
    std::uint64_t first_byte;  // Counted from the plan's beginning.
    ReadPlanStretch reads;

    std::uint64_t end_position() const { return first_position + reads.size(); }
  };
  struct Plan {
    std::uint64_t position = 0;
    std::uint64_t byte = 0;  // The bytes of all consumed reads.
    std::uint64_t end_position = 0;
    std::uint64_t end_byte = 0;
    std::deque<PlacedStretch> stretches;  // Those with reads that are not consumed.
  };

  Status check_room(const ReadPlanStretch& reads) const;
  void append(Plan& plan, ReadPlanStretch reads);
  // Consumes the read at the plan's position.
  void step(Plan& plan, const std::function<void(BlockId)>& changed);
  static std::optional<std::uint64_t> next_position(const Plan& plan, BlockId block);
  static std::optional<std::uint64_t> position_after(const Plan& plan, BlockId block,
                                                     std::uint64_t position);
  static const PlacedStretch& stretch_at(const Plan& plan, std::uint64_t position);
  static std::uint64_t distance_bytes(const Plan& plan, std::uint64_t position);

  const ReadPlanLimits limits_;
  std::map<PlanId, Plan> plans_;
  std::uint64_t last_id_ = 0;
  std::uint64_t memory_bytes_ = 0;
};

}  // namespace millrace
