#include "cache/eviction_table.h"

#include <cassert>
#include <utility>

namespace millrace {

EntrySlot BlockTable::find(BlockId block) const {
  if (index_.empty()) return kNoEntry;
  const std::size_t mask = index_.size() - 1;
  for (std::size_t place = home(block);; place = (place + 1) & mask) {
    const EntrySlot slot = index_[place];
    if (slot == kNoEntry || (*this)[slot].block == block) return slot;
  }
}

EntrySlot BlockTable::add(BlockId block, std::uint32_t bytes) {
  assert(find(block) == kNoEntry);
  if ((size_ + 1) * 4 > index_.size() * 3) grow_index();
  const EntrySlot slot = take_free_entry();
  (*this)[slot] = BlockEntry{.block = block, .bytes = bytes};
  enter(slot);
  ++size_;
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

void BlockTable::enter(EntrySlot slot) {
  const std::size_t mask = index_.size() - 1;
  std::size_t place = home((*this)[slot].block);
  while (index_[place] != kNoEntry)
    place = (place + 1) & mask;
  index_[place] = slot;
}

void BlockTable::grow_index() {
  constexpr std::size_t kFirst = 64;
  const std::size_t size = index_.empty() ? kFirst : index_.size() * 2;
  const std::vector<EntrySlot> old = std::exchange(index_, std::vector<EntrySlot>(size, kNoEntry));
  for (const EntrySlot slot : old) {
    if (slot != kNoEntry) enter(slot);
  }
}

// Entries behind the gap move into it where the walk from their home would otherwise end too early;
// so no marks of removed ones pile up.
void BlockTable::remove(EntrySlot slot) {
  const std::size_t mask = index_.size() - 1;
  std::size_t gap = home((*this)[slot].block);
  while (index_[gap] != slot)
    gap = (gap + 1) & mask;
  for (std::size_t place = (gap + 1) & mask; index_[place] != kNoEntry;
       place = (place + 1) & mask) {
    const std::size_t from_home = (place - home((*this)[index_[place]].block)) & mask;
    if (from_home < ((place - gap) & mask)) continue;
    index_[gap] = index_[place];
    gap = place;
  }
  index_[gap] = kNoEntry;
  (*this)[slot].next = free_;
  free_ = slot;
  --size_;
}

std::size_t BlockTable::memory_bytes() const {
  return chunks_.size() * kChunkEntries * sizeof(BlockEntry) +
         index_.capacity() * sizeof(EntrySlot);
}

}  // namespace millrace
