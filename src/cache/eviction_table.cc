#include "cache/eviction_table.h"

#include <cassert>

namespace millrace {

EntrySlot BlockTable::find(BlockId block) const {
  return index_.find(block_hash(block),
                     [&](EntrySlot slot) { return (*this)[slot].block == block; });
}

EntrySlot BlockTable::add(BlockId block, std::uint32_t bytes) {
  assert(find(block) == kNoEntry);
  const EntrySlot slot = take_free_entry();
  (*this)[slot] = BlockEntry{.block = block, .bytes = bytes};
  index_.add(slot, [this](EntrySlot any) { return hash_of(any); });
  return slot;
}

EntrySlot BlockTable::take_free_entry() {
  if (free_ == kNoEntry) {
    const std::size_t first = chunks_.size() * kChunkEntries;
    chunks_.push_back(std::make_unique<BlockEntry[]>(kChunkEntries));
    for (std::size_t number = kChunkEntries; number-- > 0;) {
      chunks_.back()[number].next = free_;
      free_ = static_cast<EntrySlot>(first + number);
    }
  }
  const EntrySlot slot = free_;
  free_ = (*this)[slot].next;
  return slot;
}

void BlockTable::remove(EntrySlot slot) {
  index_.remove(slot, [this](EntrySlot any) { return hash_of(any); });
  (*this)[slot].next = free_;
  free_ = slot;
}

std::size_t BlockTable::memory_bytes() const {
  return chunks_.size() * kChunkEntries * sizeof(BlockEntry) + index_.memory_bytes();
}

}  // namespace millrace
