#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/eviction_block.h"
#include "cache/slot_index.h"

namespace millrace {

// Where a block's entry is in a BlockTable.
using EntrySlot = SlotIndex::Slot;
inline constexpr EntrySlot kNoEntry = SlotIndex::kNone;

// Which order decides about a block.
enum class BlockPlace : std::uint8_t {
  kNone,     // None yet: it is being moved.
  kSmall,    // The small queue: on trial.
  kMain,     // The main queue: asked for more than once.
  kPlanned,  // The heap of the plan that uses it next.
  kHeld,     // None: it may not be evicted.
};

// What eviction knows about one cached block. Two million of them must be cheap, so that fields
// serve whichever order the block is in.
struct BlockEntry {
  BlockId block{};
  std::uint32_t bytes = 0;
  std::uint32_t previous = kNoEntry;  // In a queue: the younger one. In a heap: the index in it.
  std::uint32_t next = kNoEntry;      // In a queue: the older one. In a heap: the heap's number.
  std::uint32_t used_at = 0;          // By the unplanned order's clock.
  std::uint32_t holds : 24 = 0;
  BlockPlace place : 4 = BlockPlace::kNone;
  std::uint32_t frequency : 4 = 0;
};
static_assert(sizeof(BlockEntry) == 28);

// All entries, and an index from a block to its entry. Slots stay valid until the entry is removed.
//
// Invariants:
//  1. Entries live in chunks that never move, so growing copies nothing but the index.
//  2. Free entries are chained through `next`, from free_ on; the others are in the index.
class BlockTable {
 public:
  // kNoEntry when it is not there.
  EntrySlot find(BlockId block) const;
  // The block must not be there. The new entry is in no order.
  EntrySlot add(BlockId block, std::uint32_t bytes);
  void remove(EntrySlot slot);

  BlockEntry& operator[](EntrySlot slot) {
    return chunks_[slot / kChunkEntries][slot % kChunkEntries];
  }
  const BlockEntry& operator[](EntrySlot slot) const {
    return chunks_[slot / kChunkEntries][slot % kChunkEntries];
  }
  std::size_t size() const { return index_.size(); }
  std::size_t memory_bytes() const;

 private:
  static constexpr std::size_t kChunkEntries = 4096;

  EntrySlot take_free_entry();
  std::uint64_t hash_of(EntrySlot slot) const { return block_hash((*this)[slot].block); }

  std::vector<std::unique_ptr<BlockEntry[]>> chunks_;
  SlotIndex index_;
  EntrySlot free_ = kNoEntry;
};

}  // namespace millrace
