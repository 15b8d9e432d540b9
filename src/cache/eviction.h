#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/status.h"
#include "cache/eviction_block.h"
#include "cache/eviction_planned.h"
#include "cache/eviction_queues.h"
#include "cache/eviction_table.h"
#include "cache/read_plan.h"

namespace millrace {

// Says which block the cache gives up next. It knows every cached block, by its number and size,
// and no bytes.
//
// A block is in one of two orders. If a plan reads it again, the next use is known, and the block
// that is used last goes first (Belady's rule). If not, S3-FIFO guesses (cache/eviction_queues.h).
// A victim is, in this order:
//   a. the unplanned block that fails its trial in the small queue;
//   b. the unplanned block whose turn it is, if it was not used since its last turn, or the planned
//      block that is used last: whichever is used later. Nobody knows that of an unplanned block;
//      the guess is that it rests for as long again as it has rested;
//   c. where there is only one kind, one of that.
//
// So jobs without plans are treated fairly: a block that they use often outlasts a planned one that
// is used in a while, and their new blocks have their trial, a tenth of the cache, whatever is
// planned. In turn, what they used once ages while plans advance, and then gives way. And
// announcing more than one reads gains nothing, since what is planned far ahead goes first.
//
// Held blocks are in no order, cost nothing to pass over, and return when the last hold goes.
//
// Use: the cache calls this under its own lock. No call waits. One for a block takes constant time,
// or logarithmic time if it is planned. After a plan came or went, blocks are sorted anew a few at
// a time, so for a while the best victim is found only among those sorted. Calls for a block that
// is not here do nothing and return false.
//
// Invariants:
//  1. Every entry of the table is in exactly one of: the unplanned order, the planned order, held.
//  2. A block in the planned order is used by a live plan, or is an orphan of a withdrawn one.
//     (A block in the unplanned order may be planned meanwhile; it is found out at its turn.)
//  3. bytes() is the sum over the table, and so over the orders and the held blocks.
class Eviction {
 public:
  explicit Eviction(ReadPlanLimits limits = {}) : plans_(limits) {}
  Eviction(const Eviction&) = delete;
  Eviction& operator=(const Eviction&) = delete;

  // The block is cached now. Of one that was already it sets the size: blocks are filled in parts.
  void insert(BlockId block, std::uint32_t bytes);
  // The block was read. Uses of a planned block do not count: its plan says what to expect.
  bool touch(BlockId block);
  // The block is gone, held or not, for another reason than pop_victim().
  bool erase(BlockId block);
  // The block may not be a victim until each hold is released. release() of a block that is not
  // held returns false: it was erased, and perhaps inserted again.
  bool hold(BlockId block);
  bool release(BlockId block);

  // Removes the victim and returns it. Nothing when all is held, or nothing is here.
  std::optional<BlockId> pop_victim();
  // Whether a block that is not here yet should be, when another must go for it. False when all
  // that could go is used sooner than it: then serve it and do not write it. `reader` is the plan
  // of the job that reads it just now; that read itself is no reason to keep it. The question
  // counts as a turn, like pop_victim(), so that planned blocks can win room from unplanned ones.
  bool worth_keeping(BlockId block, std::optional<PlanId> reader = std::nullopt);

  // The plans, as ReadPlans says. A plan names blocks by number, so the numbers of planned objects
  // must not be given to others. It lives until it is withdrawn: withdraw those whose jobs are
  // silent, for what they will never read is kept for them.
  Result<PlanId> announce(ReadPlanStretch reads);
  Status extend(PlanId plan, ReadPlanStretch reads) {
    return plans_.extend(plan, std::move(reads));
  }
  Status advance(PlanId plan, std::uint64_t position);
  bool withdraw(PlanId plan);
  const ReadPlans& plans() const { return plans_; }

  bool contains(BlockId block) const { return table_.find(block) != kNoEntry; }
  // What insert() said of the block; 0 when it is not here.
  std::uint32_t bytes_of(BlockId block) const;
  std::size_t entries() const { return table_.size(); }
  std::uint64_t bytes() const { return evictable_bytes() + held_bytes_; }
  std::uint64_t held_bytes() const { return held_bytes_; }
  std::uint64_t planned_bytes() const { return planned_.bytes(); }
  // Without the plans.
  std::size_t memory_bytes() const;

 private:
  using Victim = PlannedOrder::Furthest;

  std::uint64_t evictable_bytes() const { return unplanned_.bytes() + planned_.bytes(); }
  bool is_filling() const;
  void take_out(EntrySlot slot);
  void sort(EntrySlot slot, BlockPlace if_unplanned);
  bool sort_orphans();
  EntrySlot unplanned_victim(std::size_t rounds_max);
  double planned_share() const;
  std::uint64_t expected_distance_bytes(EntrySlot slot) const;
  Victim next_victim();

  BlockTable table_;
  ReadPlans plans_;
  UnplannedOrder unplanned_{table_};
  PlannedOrder planned_{table_};
  std::uint64_t held_bytes_ = 0;
  std::uint64_t full_bytes_ = UINT64_MAX;   // What was here when a victim was last asked for.
  std::uint64_t recent_from_bytes_ = 0;     // The clock when recent reading began, and how much of
  std::uint64_t recent_planned_bytes_ = 0;  // it was planned.
};

}  // namespace millrace
