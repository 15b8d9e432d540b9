#include "frontends/nfs4/nfs_range_locks.h"

#include <algorithm>
#include <utility>

namespace millrace {

std::optional<NfsRange> NfsRange::of(std::uint64_t offset, std::uint64_t length) {
  if (length == 0) return std::nullopt;
  if (length == UINT64_MAX) return NfsRange{offset, UINT64_MAX};
  if (length > UINT64_MAX - offset) return std::nullopt;
  return NfsRange{offset, offset + (length - 1)};
}

std::optional<NfsRangeLock> NfsRangeLocks::conflict_in(const Locks& locks,
                                                       const NfsRangeLock& wanted) {
  for (const NfsRangeLock& held : locks) {
    if (held.owner != wanted.owner && (held.exclusive || wanted.exclusive) &&
        held.range.overlaps(wanted.range)) {
      return held;
    }
  }
  return std::nullopt;
}

NfsRangeLocks::Locks NfsRangeLocks::without(const Locks& locks, const NfsRange& range,
                                            const NfsLockOwner& owner) {
  Locks left;
  for (const NfsRangeLock& held : locks) {
    if (held.owner != owner || !held.range.overlaps(range)) {
      left.push_back(held);
      continue;
    }
    if (held.range.first < range.first)
      left.push_back({{held.range.first, range.first - 1}, held.exclusive, owner});
    if (held.range.last > range.last)
      left.push_back({{range.last + 1, held.range.last}, held.exclusive, owner});
  }
  return left;
}

NfsStatus NfsRangeLocks::store(NodeNumber node, Locks locks) {
  const auto found = nodes_.find(node);
  const std::size_t before = found == nodes_.end() ? 0 : found->second.size();
  if (locks.size() > before &&
      (locks.size() > kLocksPerNodeMax || size_ + (locks.size() - before) > locks_max_)) {
    return NfsStatus::kDelay;
  }
  size_ += locks.size() - before;
  if (locks.empty()) {
    nodes_.erase(node);
  } else {
    nodes_[node] = std::move(locks);
  }
  return NfsStatus::kOk;
}

std::optional<NfsRangeLock> NfsRangeLocks::conflict(NodeNumber node,
                                                    const NfsRangeLock& wanted) const {
  MutexLock lock(mutex_);
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? std::nullopt : conflict_in(found->second, wanted);
}

NfsResult<std::optional<NfsRangeLock>> NfsRangeLocks::lock(NodeNumber node,
                                                           const NfsRangeLock& wanted) {
  MutexLock guard(mutex_);
  const auto found = nodes_.find(node);
  const Locks held = found == nodes_.end() ? Locks() : found->second;
  if (std::optional<NfsRangeLock> other = conflict_in(held, wanted)) return other;
  Locks locks = without(held, wanted.range, wanted.owner);
  NfsRangeLock merged = wanted;
  std::erase_if(locks, [&](const NfsRangeLock& other) {
    if (other.owner != wanted.owner || other.exclusive != wanted.exclusive) return false;
    const bool before =
        other.range.last != UINT64_MAX && other.range.last + 1 == wanted.range.first;
    const bool after =
        wanted.range.last != UINT64_MAX && wanted.range.last + 1 == other.range.first;
    if (before) merged.range.first = other.range.first;
    if (after) merged.range.last = other.range.last;
    return before || after;
  });
  locks.push_back(merged);
  if (const NfsStatus status = store(node, std::move(locks)); status != NfsStatus::kOk)
    return std::unexpected(status);
  return std::nullopt;
}

NfsStatus NfsRangeLocks::unlock(NodeNumber node, const NfsRange& range, const NfsLockOwner& owner) {
  MutexLock guard(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return NfsStatus::kOk;
  return store(node, without(found->second, range, owner));
}

bool NfsRangeLocks::holds_any(NodeNumber node, const NfsLockOwner& owner) const {
  MutexLock lock(mutex_);
  const auto found = nodes_.find(node);
  return found != nodes_.end() &&
         std::ranges::any_of(found->second, [&](const auto& held) { return held.owner == owner; });
}

std::size_t NfsRangeLocks::size() const {
  MutexLock lock(mutex_);
  return size_;
}

}  // namespace millrace
