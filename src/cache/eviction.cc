#include "cache/eviction.h"

#include <cassert>
#include <limits>

namespace millrace {
namespace {

// How many blocks are sorted anew in one call after a plan came or went: enough to be done soon,
// few enough that nobody waits for the cache's lock.
constexpr std::size_t kSortedPerCall = 64;

// How many unplanned blocks that earned it are let stay before a planned one goes instead.
constexpr std::size_t kRoundsPerTurn = 1;

}  // namespace

void Eviction::insert(BlockId block, std::uint32_t bytes) {
  const EntrySlot known = table_.find(block);
  if (known == kNoEntry) {
    const EntrySlot slot = table_.add(block, bytes);
    const auto use = plans_.next_use(block);
    if (use) return planned_.put(slot, *use);
    return unplanned_.admit(slot, evictable_bytes(), is_filling());
  }
  BlockEntry& entry = table_[known];
  switch (entry.place) {
    case BlockPlace::kSmall:
    case BlockPlace::kMain:
      return unplanned_.resize(known, bytes);
    case BlockPlace::kPlanned:
      return planned_.resize(known, bytes);
    case BlockPlace::kHeld:
      held_bytes_ = held_bytes_ - entry.bytes + bytes;
      entry.bytes = bytes;
      return;
    case BlockPlace::kNone:
      assert(false);
  }
}

// Whether there is room that nothing had to be evicted for: more than a cache frees at a time.
bool Eviction::is_filling() const {
  constexpr std::uint64_t kFreedShare = 16;
  return full_bytes_ - full_bytes_ / kFreedShare > evictable_bytes() + held_bytes_;
}

bool Eviction::touch(BlockId block) {
  const EntrySlot slot = table_.find(block);
  if (slot == kNoEntry) return false;
  const BlockPlace place = table_[slot].place;
  if (place == BlockPlace::kSmall || place == BlockPlace::kMain) unplanned_.touch(slot);
  return true;
}

bool Eviction::erase(BlockId block) {
  const EntrySlot slot = table_.find(block);
  if (slot == kNoEntry) return false;
  take_out(slot);
  table_.remove(slot);
  return true;
}

bool Eviction::hold(BlockId block) {
  const EntrySlot slot = table_.find(block);
  if (slot == kNoEntry) return false;
  BlockEntry& entry = table_[slot];
  if (entry.holds == 0) {
    take_out(slot);
    entry.place = BlockPlace::kHeld;
    held_bytes_ += entry.bytes;
  }
  ++entry.holds;
  assert(entry.holds != 0);
  return true;
}

bool Eviction::release(BlockId block) {
  const EntrySlot slot = table_.find(block);
  if (slot == kNoEntry || table_[slot].holds == 0) return false;
  BlockEntry& entry = table_[slot];
  if (--entry.holds > 0) return true;
  take_out(slot);
  sort(slot, BlockPlace::kMain);
  return true;
}

// Takes a block out of the order that it is in.
void Eviction::take_out(EntrySlot slot) {
  BlockEntry& entry = table_[slot];
  switch (entry.place) {
    case BlockPlace::kSmall:
    case BlockPlace::kMain:
      return unplanned_.remove(slot);
    case BlockPlace::kPlanned:
      return planned_.remove(slot);
    case BlockPlace::kHeld:
      held_bytes_ -= entry.bytes;
      entry.place = BlockPlace::kNone;
      return;
    case BlockPlace::kNone:
      assert(false);
  }
}

// Puts a block that is in no order where it belongs.
void Eviction::sort(EntrySlot slot, BlockPlace if_unplanned) {
  const auto use = plans_.next_use(table_[slot].block);
  if (use) return planned_.put(slot, *use);
  unplanned_.put(slot, if_unplanned);
}

// A plan that ended says nothing for a block, so it is on trial again. True when some are left.
bool Eviction::sort_orphans() {
  for (std::size_t count = 0; count < kSortedPerCall; ++count) {
    const EntrySlot slot = planned_.any_orphan();
    if (slot == kNoEntry) return false;
    planned_.remove(slot);
    sort(slot, BlockPlace::kSmall);
  }
  return planned_.any_orphan() != kNoEntry;
}

// The unplanned block that has to go, or kNoEntry when none is found before `rounds_max` of those
// that earned it were given another round in main. Planned ones on the way move to their order.
EntrySlot Eviction::unplanned_victim(std::size_t rounds_max) {
  const EntrySlot stale = unplanned_.patrol(evictable_bytes());
  if (stale != kNoEntry && !plans_.next_use(table_[stale].block)) return stale;
  std::size_t rounds = 0;
  std::size_t planned = 0;
  while (rounds <= rounds_max && planned < kSortedPerCall) {
    const EntrySlot slot = unplanned_.candidate(evictable_bytes());
    if (slot == kNoEntry) return kNoEntry;
    if (const auto use = plans_.next_use(table_[slot].block)) {
      unplanned_.remove(slot);
      planned_.put(slot, *use);
      ++planned;
      continue;
    }
    if (unplanned_.is_cold(slot)) return slot;
    if (table_[slot].place == BlockPlace::kMain) ++rounds;
    if (rounds <= rounds_max) unplanned_.pass_over(slot);
  }
  return kNoEntry;
}

// How far away an unplanned block's next use probably is, in bytes of one plan's reading, as plans
// count. A block that fails its trial gets no guess.
std::uint64_t Eviction::expected_distance_bytes(EntrySlot slot) const {
  const bool fails_trial =
      table_[slot].place == BlockPlace::kSmall && unplanned_.small_is_over(evictable_bytes());
  if (fails_trial || plans_.size() == 0) return std::numeric_limits<std::uint64_t>::max();
  const double age = static_cast<double>(unplanned_.age_bytes(slot));
  return static_cast<std::uint64_t>(age * planned_share() / static_cast<double>(plans_.size()));
}

Eviction::Victim Eviction::next_victim() {
  for (const std::size_t rounds_max : {kRoundsPerTurn, std::numeric_limits<std::size_t>::max()}) {
    const EntrySlot slot = unplanned_victim(rounds_max);
    const auto planned = planned_.furthest(plans_);
    const std::uint64_t distance = slot == kNoEntry ? 0 : expected_distance_bytes(slot);
    if (planned && (slot == kNoEntry || planned->distance_bytes > distance)) return *planned;
    if (slot != kNoEntry) return {.slot = slot, .distance_bytes = distance};
  }
  return {};
}

std::optional<BlockId> Eviction::pop_victim() {
  full_bytes_ = bytes();
  EntrySlot slot = kNoEntry;
  for (bool more = true; more && slot == kNoEntry;) {
    more = sort_orphans();
    slot = next_victim().slot;
  }
  if (slot == kNoEntry) return std::nullopt;
  const BlockId block = table_[slot].block;
  if (table_[slot].place == BlockPlace::kPlanned) {
    planned_.remove(slot);
  } else {
    unplanned_.evict(slot, evictable_bytes());
  }
  table_.remove(slot);
  return block;
}

bool Eviction::worth_keeping(BlockId block, std::optional<PlanId> reader) {
  const auto use = plans_.next_use_after_read(block, reader.value_or(PlanId()));
  if (!use) return true;
  sort_orphans();
  const Victim victim = next_victim();
  return victim.slot == kNoEntry || use->distance_bytes < victim.distance_bytes;
}

Result<PlanId> Eviction::announce(ReadPlanStretch reads) {
  if (plans_.size() == 0) {
    recent_planned_bytes_ = 0;
    recent_from_bytes_ = unplanned_.used_bytes();
  }
  return plans_.announce(std::move(reads));
}

Status Eviction::advance(PlanId plan, std::uint64_t position) {
  const auto sort_anew = [this](BlockId block) {
    const EntrySlot slot = table_.find(block);
    if (slot == kNoEntry || table_[slot].place != BlockPlace::kPlanned) return;
    planned_.remove(slot);
    sort(slot, BlockPlace::kSmall);
  };
  MR_ASSIGN_OR_RETURN(const std::uint64_t read_bytes, plans_.advance(plan, position, sort_anew));
  unplanned_.pass_time(read_bytes);
  recent_planned_bytes_ += read_bytes;
  const std::uint64_t recent_bytes = unplanned_.used_bytes() - recent_from_bytes_;
  if (recent_bytes > evictable_bytes()) {
    recent_planned_bytes_ /= 2;
    recent_from_bytes_ += recent_bytes / 2;
  }
  return {};
}

// Which part of all reading follows a plan. Recent is about as much as the cache holds.
double Eviction::planned_share() const {
  const std::uint64_t recent_bytes = unplanned_.used_bytes() - recent_from_bytes_;
  if (recent_bytes == 0) return 1;
  return static_cast<double>(recent_planned_bytes_) / static_cast<double>(recent_bytes);
}

bool Eviction::withdraw(PlanId plan) {
  planned_.orphan(plan);
  return plans_.withdraw(plan);
}

std::uint32_t Eviction::bytes_of(BlockId block) const {
  const EntrySlot slot = table_.find(block);
  return slot == kNoEntry ? 0 : table_[slot].bytes;
}

std::size_t Eviction::memory_bytes() const {
  return table_.memory_bytes() + unplanned_.memory_bytes() + planned_.memory_bytes();
}

}  // namespace millrace
