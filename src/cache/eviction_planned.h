#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cache/eviction_table.h"
#include "cache/read_plan.h"

namespace millrace {

// The order of blocks that a plan mentions: by next use, furthest first. A block is in the heap of
// the plan that uses it next, sorted by its position there, which does not change while the job
// reads on. Only another plan can bring the next use nearer, and that is noticed when the block
// comes to the top.
//
// Invariants:
//  1. An entry at kPlanned names its heap (next) and its index there (previous), and that item
//     names the entry.
//  2. The parent of an item is at least as far.
//  3. In the heap of a live plan, an item's position is the plan's next use of the block. So an
//     item is never nearer than it says; by another plan it may be.
//  4. The heap of a withdrawn plan holds orphans: blocks that have to be sorted anew.
class PlannedOrder {
 public:
  explicit PlannedOrder(BlockTable& table) : table_(table) {}

  void put(EntrySlot slot, const NextUse& use);
  void remove(EntrySlot slot);
  void resize(EntrySlot slot, std::uint32_t bytes);
  // All blocks of the plan become orphans.
  void orphan(PlanId plan);
  // One of the orphans, or kNoEntry.
  EntrySlot any_orphan() const;

  struct Furthest {
    EntrySlot slot = kNoEntry;
    std::uint64_t distance_bytes = 0;
  };
  // The block that is used last, orphans aside. `plans` as they are now: every block that they use
  // later than before, or no more, was put again or removed.
  std::optional<Furthest> furthest(const ReadPlans& plans);

  std::uint64_t bytes() const { return bytes_; }
  std::size_t memory_bytes() const;

 private:
  // 12 bytes: a 64-bit position would be padded to 16.
  struct Item {
    std::uint32_t position_high;
    std::uint32_t position_low;
    EntrySlot slot;

    std::uint64_t position() const { return (std::uint64_t{position_high} << 32) | position_low; }
  };
  struct Heap {
    PlanId plan;  // PlanId(): withdrawn.
    std::vector<Item> items;
  };

  Heap& heap_of(PlanId plan);
  std::optional<Furthest> furthest_as_filed(const ReadPlans& plans) const;
  void set(Heap& heap, std::size_t index, const Item& item);
  void sift_up(Heap& heap, std::size_t index);
  void sift_down(Heap& heap, std::size_t index);

  BlockTable& table_;
  std::vector<Heap> heaps_;
  std::uint64_t bytes_ = 0;
};

}  // namespace millrace
