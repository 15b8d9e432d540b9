#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "frontends/nfs4/nfs_types.h"
#include "vfs/node.h"

namespace millrace {

// Bytes of a file, the last included: a range to the end of all files ends at the highest number.
struct NfsRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  // Of an offset and a length, all ones for "to the end". Nothing when there are no bytes in it, or
  // more than there can be.
  static std::optional<NfsRange> of(std::uint64_t offset, std::uint64_t length);
  std::uint64_t length() const { return last == UINT64_MAX ? UINT64_MAX : last - first + 1; }
  bool overlaps(const NfsRange& other) const { return first <= other.last && other.first <= last; }
  bool operator==(const NfsRange&) const = default;
};

// One per lock owner: two are the same when they are the same object.
using NfsLockOwner = std::shared_ptr<const NfsStateOwner>;

struct NfsRangeLock {
  NfsRange range;
  bool exclusive = false;
  NfsLockOwner owner;
};

// The byte-range locks of all clients. Safe from any thread.
//
// Invariants, per node:
//  1. Ranges of one owner do not overlap, and two that touch are of different kinds.
//  2. An exclusive range overlaps no range of another owner.
class NfsRangeLocks {
 public:
  // All of a node are looked at for each lock.
  static constexpr std::size_t kLocksPerNodeMax = 4096;

  explicit NfsRangeLocks(std::size_t locks_max) : locks_max_(locks_max) {}

  // A lock of another that is in the way; `owner` may be null.
  std::optional<NfsRangeLock> conflict(NodeNumber node, const NfsRangeLock& wanted) const
      MR_EXCLUDES(mutex_);
  // Takes the lock, in place of what the owner had there. Returns what is in the way; kDelay when
  // there are too many locks.
  NfsResult<std::optional<NfsRangeLock>> lock(NodeNumber node, const NfsRangeLock& wanted)
      MR_EXCLUDES(mutex_);
  // Gives up what the owner has of the range. kDelay when that would make one too many.
  NfsStatus unlock(NodeNumber node, const NfsRange& range, const NfsLockOwner& owner)
      MR_EXCLUDES(mutex_);
  bool holds_any(NodeNumber node, const NfsLockOwner& owner) const MR_EXCLUDES(mutex_);
  std::size_t size() const MR_EXCLUDES(mutex_);

 private:
  using Locks = std::vector<NfsRangeLock>;
  static std::optional<NfsRangeLock> conflict_in(const Locks& locks, const NfsRangeLock& wanted);
  static Locks without(const Locks& locks, const NfsRange& range, const NfsLockOwner& owner);
  NfsStatus store(NodeNumber node, Locks locks) MR_REQUIRES(mutex_);

  const std::size_t locks_max_;
  mutable Mutex mutex_;
  std::map<NodeNumber, Locks> nodes_ MR_GUARDED_BY(mutex_);
  std::size_t size_ MR_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
