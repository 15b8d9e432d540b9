#include "cache/read_plan_stretch.h"

#include <array>
#include <cassert>
#include <utility>

namespace millrace {

ReadPlanStretch::ReadPlanStretch(std::vector<PlannedBlock> reads) : reads_(std::move(reads)) {
  assert(reads_.size() <= kReadsMax);
  reads_.shrink_to_fit();
  index_blocks();
  sum_bytes();
}

// Three slots for two reads: below that, probing gets long; above, memory gets scarce.
std::size_t ReadPlanStretch::head_count(std::size_t reads) { return reads + reads / 2 + 1; }

std::uint64_t ReadPlanStretch::memory_bytes(std::size_t reads) {
  return reads * (sizeof(PlannedBlock) + sizeof(std::uint32_t)) +
         head_count(reads) * sizeof(std::uint32_t) +
         (reads / kSumReads + 1) * sizeof(std::uint64_t);
}

// The table has just the size it needs, no power of two: the hash is scaled to it.
std::size_t ReadPlanStretch::first_slot(BlockId block) const {
  return static_cast<std::size_t>(((block_hash(block) >> 32) * heads_.size()) >> 32);
}

// The block's slot, or the free one where it belongs.
std::size_t ReadPlanStretch::slot_of(BlockId block, std::size_t from) const {
  std::size_t slot = from;
  while (heads_[slot] != kNone && reads_[heads_[slot] & ~kConsumed].block != block) {
    if (++slot == heads_.size()) slot = 0;
  }
  return slot;
}

// From the last read to the first, so that each chain grows at its head. The table is larger than
// the processor's caches, and the slots of a few reads ahead are asked for early.
void ReadPlanStretch::index_blocks() {
  constexpr std::size_t kAhead = 16;
  next_.assign(reads_.size(), kNone);
  heads_.assign(head_count(reads_.size()), kNone);
  std::array<std::size_t, kAhead> early{};
  const std::size_t size = reads_.size();
  for (std::size_t step = 0; step < size + kAhead; ++step) {
    if (step >= kAhead) {
      const std::size_t index = size - 1 - (step - kAhead);
      const std::size_t slot = slot_of(reads_[index].block, early[step % kAhead]);
      next_[index] = heads_[slot];
      heads_[slot] = static_cast<std::uint32_t>(index);
    }
    if (step < size) {
      early[step % kAhead] = first_slot(reads_[size - 1 - step].block);
      __builtin_prefetch(&heads_[early[step % kAhead]]);
    }
  }
}

void ReadPlanStretch::sum_bytes() {
  bytes_before_.reserve(reads_.size() / kSumReads + 1);
  std::uint64_t sum = 0;
  for (std::size_t index = 0; index < reads_.size(); ++index) {
    if (index % kSumReads == 0) bytes_before_.push_back(sum);
    sum += reads_[index].bytes;
  }
  if (reads_.size() % kSumReads == 0) bytes_before_.push_back(sum);
}

std::uint64_t ReadPlanStretch::bytes_before(std::size_t index) const {
  std::uint64_t sum = bytes_before_[index / kSumReads];
  for (std::size_t before = index - index % kSumReads; before < index; ++before)
    sum += reads_[before].bytes;
  return sum;
}

std::optional<std::uint32_t> ReadPlanStretch::next_read(BlockId block) const {
  const std::uint32_t head = heads_[slot_of(block, first_slot(block))];
  if ((head & kConsumed) != 0) return std::nullopt;  // kNone has the mark as well.
  return head;
}

std::optional<std::uint32_t> ReadPlanStretch::read_after(std::size_t index) const {
  if (next_[index] == kNone) return std::nullopt;
  return next_[index];
}

bool ReadPlanStretch::consume(std::size_t index) {
  const BlockId block = reads_[index].block;
  std::uint32_t& head = heads_[slot_of(block, first_slot(block))];
  if (head != index) return false;
  head = next_[index] == kNone ? head | kConsumed : next_[index];
  return true;
}

}  // namespace millrace
