#include "cache/cache_space.h"

#include <algorithm>
#include <cassert>
#include <unordered_set>
#include <utility>

namespace millrace {

// ---- Names

// What the index of numbers asks.
struct CacheSpace::HasDigest {
  const std::deque<Resident>& residents;
  const ObjectDigest& digest;

  bool operator()(std::uint32_t number) const { return residents[number].digest == digest; }
};

struct CacheSpace::DigestHash {
  const std::deque<Resident>& residents;

  std::uint64_t operator()(std::uint32_t number) const {
    return std::hash<ObjectDigest>{}(residents[number].digest);
  }
};

std::optional<BlockId> CacheSpace::find(const ObjectDigest& digest, std::uint32_t block) const {
  const std::uint32_t number =
      numbers_.find(std::hash<ObjectDigest>{}(digest), HasDigest{residents_, digest});
  if (number == SlotIndex::kNone) return std::nullopt;
  return BlockId{number, block};
}

BlockId CacheSpace::name(const ObjectDigest& digest, std::uint32_t block) {
  if (const std::optional<BlockId> known = find(digest, block)) return *known;
  std::uint32_t number = 0;
  if (free_numbers_.empty()) {
    number = static_cast<std::uint32_t>(residents_.size());
    residents_.emplace_back();
  } else {
    number = free_numbers_.back();
    free_numbers_.pop_back();
  }
  residents_[number].digest = digest;
  numbers_.add(number, DigestHash{residents_});
  return {number, block};
}

std::uint32_t CacheSpace::bytes_of(BlockId id) const {
  const auto leaving = leaving_.find(id);
  return leaving == leaving_.end() ? eviction_.bytes_of(id) : leaving->second;
}

void CacheSpace::drop_reference(BlockId id) {
  Resident& resident = residents_[id.object];
  assert(resident.references > 0);
  if (--resident.references > 0) return;
  numbers_.remove(id.object, DigestHash{residents_});
  resident = Resident{};
  free_numbers_.push_back(id.object);
}

void CacheSpace::set_bytes(BlockId id, std::uint32_t bytes) {
  const std::uint32_t known = bytes_of(id);
  Resident& resident = residents_[id.object];
  if (known == 0 && bytes > 0) ++resident.references;
  resident.blocks = std::max(resident.blocks, id.block + 1);
  used_bytes_ = used_bytes_ - known + bytes;
  leaving_.erase(id);
  const bool is_new = !eviction_.contains(id);
  eviction_.insert(id, bytes);
  if (is_new && holds_.contains(id)) eviction_.hold(id);
}

// ---- Coming

bool CacheSpace::try_reserve(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  if (occupied_bytes() + reserved_bytes_ + bytes > limit_bytes_) return false;
  reserved_bytes_ += bytes;
  return true;
}

void CacheSpace::unreserve(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  assert(reserved_bytes_ >= bytes);
  reserved_bytes_ -= bytes;
}

void CacheSpace::fill(const ObjectDigest& digest, std::uint32_t block, std::uint32_t bytes) {
  MutexLock lock(mutex_);
  assert(reserved_bytes_ >= bytes);
  reserved_bytes_ -= bytes;
  const BlockId id = name(digest, block);
  set_bytes(id, bytes_of(id) + bytes);
}

void CacheSpace::found(const ObjectDigest& digest, std::uint32_t block, std::uint32_t bytes) {
  MutexLock lock(mutex_);
  if (bytes == 0) return;
  const BlockId id = name(digest, block);
  if (bytes > bytes_of(id)) set_bytes(id, bytes);
}

void CacheSpace::touch(const ObjectDigest& digest, std::uint32_t block) {
  MutexLock lock(mutex_);
  if (const std::optional<BlockId> id = find(digest, block)) eviction_.touch(*id);
}

// ---- Going

std::optional<CacheSpace::Block> CacheSpace::pop_victim() {
  MutexLock lock(mutex_);
  const std::uint64_t bytes_before = eviction_.bytes();
  const std::optional<BlockId> id = eviction_.pop_victim();
  if (!id) return std::nullopt;
  const auto bytes = static_cast<std::uint32_t>(bytes_before - eviction_.bytes());
  leaving_.emplace(*id, bytes);
  return Block{residents_[id->object].digest, id->block, bytes};
}

void CacheSpace::keep(const Block& block) {
  MutexLock lock(mutex_);
  const std::optional<BlockId> id = find(block.digest, block.block);
  if (id && leaving_.contains(*id)) set_bytes(*id, leaving_.at(*id));
}

void CacheSpace::remove(const ObjectDigest& digest, std::uint32_t block) {
  MutexLock lock(mutex_);
  if (const std::optional<BlockId> id = find(digest, block)) remove(*id);
}

void CacheSpace::shrink(const ObjectDigest& digest, std::uint32_t block, std::uint32_t bytes) {
  MutexLock lock(mutex_);
  const std::optional<BlockId> id = find(digest, block);
  if (!id || bytes_of(*id) == 0) return;
  if (bytes_of(*id) > bytes) {
    set_bytes(*id, bytes_of(*id) - bytes);
  } else {
    remove(*id);
  }
}

void CacheSpace::remove_object(const ObjectDigest& digest, std::uint64_t unlinked_bytes) {
  MutexLock lock(mutex_);
  unlinked_bytes_ += static_cast<std::int64_t>(unlinked_bytes);
  const std::optional<BlockId> id = find(digest, 0);
  if (!id) return;
  const std::uint32_t blocks = residents_[id->object].blocks;
  // The last one may give the number away, and then it is another object's.
  for (std::uint32_t block = 0; block < blocks && find(digest, block) == BlockId{id->object, block};
       ++block) {
    remove(BlockId{id->object, block});
  }
}

void CacheSpace::remove(BlockId id) {
  const std::uint32_t bytes = bytes_of(id);
  if (bytes == 0) return;
  used_bytes_ -= bytes;
  leaving_.erase(id);
  eviction_.erase(id);
  drop_reference(id);
}

void CacheSpace::remove_unlinked(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  unlinked_bytes_ -= static_cast<std::int64_t>(bytes);
}

// ---- Leases

BlockId CacheSpace::hold_block(const ObjectDigest& digest, std::uint32_t block) {
  const BlockId id = name(digest, block);
  if (++holds_[id].holders == 1) {
    ++residents_[id.object].references;
    eviction_.hold(id);
  }
  return id;
}

void CacheSpace::release_block(BlockId id) {
  const auto held = holds_.find(id);
  if (held == holds_.end() || --held->second.holders > 0) return;
  holds_.erase(held);
  eviction_.release(id);
  drop_reference(id);
}

void CacheSpace::hold(const ObjectDigest& digest, std::uint32_t block) {
  MutexLock lock(mutex_);
  hold_block(digest, block);
}

void CacheSpace::release(const ObjectDigest& digest, std::uint32_t block) {
  MutexLock lock(mutex_);
  if (const std::optional<BlockId> id = find(digest, block)) release_block(*id);
}

void CacheSpace::promise(const ObjectDigest& digest, std::uint32_t block, std::uint32_t bytes) {
  MutexLock lock(mutex_);
  Promised& promised = holds_[hold_block(digest, block)].promised;
  if (++promised.times > 1) return;
  promised.bytes = bytes;
  promised_bytes_ += bytes;
}

void CacheSpace::release_promise(const ObjectDigest& digest, std::uint32_t block) {
  MutexLock lock(mutex_);
  const std::optional<BlockId> id = find(digest, block);
  const auto held = id ? holds_.find(*id) : holds_.end();
  if (held == holds_.end() || held->second.promised.times == 0) return;
  if (--held->second.promised.times == 0) promised_bytes_ -= held->second.promised.bytes;
  release_block(*id);
}

CacheSpace::Promised CacheSpace::promised(const ObjectDigest& digest, std::uint32_t block) const {
  MutexLock lock(mutex_);
  const std::optional<BlockId> id = find(digest, block);
  const auto held = id ? holds_.find(*id) : holds_.end();
  return held == holds_.end() ? Promised() : held->second.promised;
}

bool CacheSpace::is_held(const ObjectDigest& digest, std::uint32_t blocks) const {
  MutexLock lock(mutex_);
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const std::optional<BlockId> id = find(digest, block);
    if (id && holds_.contains(*id)) return true;
  }
  return false;
}

// ---- Plans

// Building the index of a long plan takes a while: that happens without the lock.
ReadPlanStretch CacheSpace::stretch_of(std::span<const PlannedUse> uses,
                                       std::vector<std::uint32_t>& numbers) {
  std::vector<PlannedBlock> reads;
  reads.reserve(uses.size());
  {
    MutexLock lock(mutex_);
    std::unordered_set<std::uint32_t> seen;
    for (const PlannedUse& use : uses) {
      const BlockId id = name(use.digest, use.block);
      if (seen.insert(id.object).second) {
        ++residents_[id.object].references;
        numbers.push_back(id.object);
      }
      reads.push_back({id, use.bytes});
    }
  }
  return ReadPlanStretch(std::move(reads));
}

void CacheSpace::drop_numbers(const std::vector<std::uint32_t>& numbers) {
  for (const std::uint32_t number : numbers)
    drop_reference({number, 0});
}

Result<PlanId> CacheSpace::announce(std::span<const PlannedUse> uses) {
  std::vector<std::uint32_t> numbers;
  ReadPlanStretch stretch = stretch_of(uses, numbers);
  MutexLock lock(mutex_);
  Result<PlanId> plan = eviction_.announce(std::move(stretch));
  if (!plan) {
    drop_numbers(numbers);
    return plan;
  }
  plan_numbers_.emplace(*plan, std::move(numbers));
  return plan;
}

Status CacheSpace::extend(PlanId plan, std::span<const PlannedUse> uses) {
  std::vector<std::uint32_t> numbers;
  ReadPlanStretch stretch = stretch_of(uses, numbers);
  MutexLock lock(mutex_);
  const auto known = plan_numbers_.find(plan);
  Status status = known == plan_numbers_.end()
                      ? Status(StatusCode::kNotFound, "there is no such plan (any more)")
                      : eviction_.extend(plan, std::move(stretch));
  if (!status.ok()) {
    drop_numbers(numbers);
    return status;
  }
  known->second.insert(known->second.end(), numbers.begin(), numbers.end());
  return {};
}

Status CacheSpace::advance(PlanId plan, std::uint64_t position) {
  MutexLock lock(mutex_);
  return eviction_.advance(plan, position);
}

void CacheSpace::withdraw(PlanId plan) {
  MutexLock lock(mutex_);
  eviction_.withdraw(plan);
  const auto known = plan_numbers_.find(plan);
  if (known == plan_numbers_.end()) return;
  drop_numbers(known->second);
  plan_numbers_.erase(known);
}

// ---- Figures

std::vector<ObjectDigest> CacheSpace::digests() const {
  MutexLock lock(mutex_);
  std::vector<ObjectDigest> digests;
  digests.reserve(numbers_.size());
  for (const Resident& resident : residents_) {
    if (resident.references > 0) digests.push_back(resident.digest);
  }
  return digests;
}

void CacheSpace::set_limit(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  limit_bytes_ = bytes;
}

std::uint64_t CacheSpace::limit_bytes() const {
  MutexLock lock(mutex_);
  return limit_bytes_;
}

bool CacheSpace::is_over_limit() const {
  MutexLock lock(mutex_);
  return occupied_bytes() + reserved_bytes_ > limit_bytes_;
}

std::uint64_t CacheSpace::occupied_bytes() const {
  return used_bytes_ + static_cast<std::uint64_t>(std::max<std::int64_t>(unlinked_bytes_, 0));
}

std::uint64_t CacheSpace::used_bytes() const {
  MutexLock lock(mutex_);
  return occupied_bytes();
}

std::uint64_t CacheSpace::held_bytes() const {
  MutexLock lock(mutex_);
  return eviction_.held_bytes();
}

std::uint64_t CacheSpace::promised_bytes() const {
  MutexLock lock(mutex_);
  return promised_bytes_;
}

}  // namespace millrace
