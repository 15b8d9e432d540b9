#include "cache/eviction_queues.h"

#include <algorithm>
#include <cassert>

#include "base/bytes.h"

namespace millrace {
namespace {

constexpr std::uint64_t kSmallShare = 10;
constexpr std::uint32_t kFrequencyMax = 3;

// Ghosts per block. With as many ghosts as blocks, shuffled epochs over twice the cache have 2.5
// times fewer hits, and popular blocks hardly any more (bench/hit_ratio_bench.cc).
constexpr std::size_t kGhostShare = 8;

// A block of main is stale when so many times what the cache holds was read since its last use, or
// more where blocks are seen to return after more.
constexpr std::uint64_t kStaleCaches = 4;

// Uses of a block count as one while the clock moves less than this: what a few dozen streams read
// while each is inside one block, and a small part of the cache.
constexpr std::uint64_t kOneUseBytesMax = 256 * kMiB;
constexpr std::uint64_t kOneUseShare = 64;

// Clock times in entries have 32 bits. They overflow after 64 TiB, and then a block that was not
// used for so long looks fresh, once.
constexpr std::uint64_t kClockUnitBytes = 16 * kKiB;

}  // namespace

std::size_t UnplannedOrder::ghosts_max() const {
  return (small_.entries + main_.entries) / kGhostShare;
}

std::uint32_t UnplannedOrder::now() const {
  return static_cast<std::uint32_t>(used_bytes_ / kClockUnitBytes);
}

void UnplannedOrder::admit(EntrySlot slot, std::uint64_t all_bytes, bool filling) {
  const bool returns = ghosts_.take(table_[slot].block, ghosts_max());
  const bool spills = filling && small_.bytes >= all_bytes / kSmallShare;
  used_bytes_ += table_[slot].bytes;
  put(slot, returns || spills ? BlockPlace::kMain : BlockPlace::kSmall);
}

void UnplannedOrder::put(EntrySlot slot, BlockPlace place) {
  table_[slot].used_at = now();
  push(slot, place);
}

void UnplannedOrder::push(EntrySlot slot, BlockPlace place) {
  BlockEntry& entry = table_[slot];
  assert(entry.place == BlockPlace::kNone);
  entry.place = place;
  Queue& queue = queue_of(entry);
  entry.previous = kNoEntry;
  entry.next = queue.youngest;
  (queue.youngest == kNoEntry ? queue.oldest : table_[queue.youngest].previous) = slot;
  queue.youngest = slot;
  queue.bytes += entry.bytes;
  ++queue.entries;
}

void UnplannedOrder::remove(EntrySlot slot) {
  BlockEntry& entry = table_[slot];
  Queue& queue = queue_of(entry);
  if (slot == patrolled_) patrolled_ = entry.previous;
  (entry.previous == kNoEntry ? queue.youngest : table_[entry.previous].next) = entry.next;
  (entry.next == kNoEntry ? queue.oldest : table_[entry.next].previous) = entry.previous;
  queue.bytes -= entry.bytes;
  --queue.entries;
  entry.place = BlockPlace::kNone;
}

void UnplannedOrder::evict(EntrySlot slot, std::uint64_t all_bytes) {
  const bool was_on_trial = table_[slot].place == BlockPlace::kSmall;
  if (was_on_trial) ghosts_.add(table_[slot].block, ghosts_max());
  remove(slot);
  if (!was_on_trial && small_is_over(all_bytes)) pass_over(small_.oldest);
}

// A block that grows is being read for the first time.
void UnplannedOrder::resize(EntrySlot slot, std::uint32_t bytes) {
  BlockEntry& entry = table_[slot];
  Queue& queue = queue_of(entry);
  queue.bytes = queue.bytes - entry.bytes + bytes;
  if (bytes > entry.bytes) {
    used_bytes_ += bytes - entry.bytes;
    entry.used_at = now();
  }
  entry.bytes = bytes;
}

void UnplannedOrder::touch(EntrySlot slot) {
  BlockEntry& entry = table_[slot];
  if (age_bytes(slot) < std::min(kOneUseBytesMax, bytes() / kOneUseShare)) return;
  if (entry.place == BlockPlace::kMain) learn_reuse(age_bytes(slot));
  if (entry.frequency < kFrequencyMax) ++entry.frequency;
  used_bytes_ += entry.bytes;
  entry.used_at = now();
}

std::uint64_t UnplannedOrder::age_bytes(EntrySlot slot) const {
  return std::uint64_t{now() - table_[slot].used_at} * kClockUnitBytes;
}

bool UnplannedOrder::small_is_over(std::uint64_t all_bytes) const {
  return small_.bytes > all_bytes / kSmallShare;
}

// Rises fast and falls slowly, so that it stays near the greatest ages that were seen.
void UnplannedOrder::learn_reuse(std::uint64_t age_bytes) {
  if (age_bytes > reuse_bytes_) {
    reuse_bytes_ += (age_bytes - reuse_bytes_) / 2;
  } else {
    reuse_bytes_ -= (reuse_bytes_ - age_bytes) / 4096;
  }
}

EntrySlot UnplannedOrder::patrol(std::uint64_t all_bytes) {
  const EntrySlot slot = patrolled_ == kNoEntry ? main_.oldest : patrolled_;
  if (slot == kNoEntry) return kNoEntry;
  patrolled_ = table_[slot].previous;
  reuse_bytes_ = std::max(reuse_bytes_, kStaleCaches * all_bytes);
  return age_bytes(slot) > reuse_bytes_ + reuse_bytes_ / 4 ? slot : kNoEntry;
}

EntrySlot UnplannedOrder::candidate(std::uint64_t all_bytes) const {
  return small_is_over(all_bytes) || main_.entries == 0 ? small_.oldest : main_.oldest;
}

bool UnplannedOrder::is_cold(EntrySlot slot) const { return table_[slot].frequency == 0; }

// From small into main, where it has to earn its stay anew; in main once around, for one use.
void UnplannedOrder::pass_over(EntrySlot slot) {
  BlockEntry& entry = table_[slot];
  if (entry.place == BlockPlace::kSmall) {
    entry.frequency = 0;
  } else {
    --entry.frequency;
  }
  remove(slot);
  push(slot, BlockPlace::kMain);
}

}  // namespace millrace
