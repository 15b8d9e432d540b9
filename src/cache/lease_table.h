#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cache/cache_space.h"
#include "cache/lease.h"
#include "cache/lease_format.h"
#include "platform/disk.h"

namespace millrace {

// The leases of one cache directory, in files below `<directory>/leases`, so that they outlive the
// process.
//
// Invariants:
//  1. Every block of a lease in the table is held in the books; nothing else is.
//  2. A promise is on the disk before it is granted, and gone from it before its blocks are
//     released. A hold is in memory alone.
//
// All methods block on the disk and are safe from any thread.
class LeaseTable {
 public:
  LeaseTable(Disk& disk, std::string directory, CacheSpace& space, Clock& clock);

  // Takes up the leases of an earlier process. A damaged one is reported, and gone.
  Status load();

  // Grants, or replaces the lease of the same name. Durable on success.
  Status grant(const StoredLease& lease);
  // Makes it last until `expires`, if it is a promise. kNotFound when there is no such lease (any
  // more).
  Status renew(const LeaseId& id, WallTime expires);
  // False when there was none.
  Result<bool> release(const LeaseId& id);
  // Releases what has expired.
  void expire();
  // Releases a hold, or else the promise that expires first, because the disk is full. Nothing when
  // there is none.
  std::optional<LeaseInfo> break_one();

  // The promises.
  std::vector<LeaseInfo> list();
  // What others than this lease have promised: in all, and whether a block is a part of it.
  std::uint64_t promised_besides(const LeaseId& id);
  bool is_promised_besides(const LeaseId& id, const ObjectDigest& digest, std::uint32_t block);

 private:
  std::string path_of(const LeaseId& id) const;
  Status write(const StoredLease& lease);
  void hold(const StoredLease& lease);
  void release_blocks(const StoredLease& lease);
  Status remove_file(const StoredLease& lease);
  // Null when it is none.
  const StoredLease* find_promise(const LeaseId& id) const MR_REQUIRES(mutex_);

  Disk& disk_;
  const std::string directory_;
  CacheSpace& space_;
  Clock& clock_;

  Mutex mutex_;  // Held over disk calls: leases come and go rarely.
  std::map<LeaseId, StoredLease> leases_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
