#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "frontends/nfs4/nfs_client_records.h"
#include "frontends/nfs4/nfs_state_options.h"

namespace millrace {

// Who holds state, as the disk knows it, and who has lost it by no wish of its own and may claim it
// again: those of the last life, and those that we had to forget. For as long as the courtesy
// lasts.
//
// Safe from any thread. The records and the clock outlive it.
class NfsReclaimers {
 public:
  NfsReclaimers(NfsClientRecords& records, const NfsStateOptions& options, Clock& clock);

  // The owner holds state from now on. On the disk when it returns, or the failure is logged: then
  // it opens its files anew after a restart, which read-only files allow. Waits for the disk.
  void record(const std::string& owner);
  // Whether the owner may claim. It does so once.
  bool take(const std::string& owner) MR_EXCLUDES(mutex_);
  // It has lost its state.
  void add(const std::string& owner) MR_EXCLUDES(mutex_);
  // It holds nothing any more, and wants nothing back. May wait for the disk.
  void forget(const std::string& owner) MR_EXCLUDES(mutex_);
  // Forgets who did not come back in time, and those who are too many. May wait for the disk.
  void sweep() MR_EXCLUDES(mutex_);

 private:
  NfsClientRecords& records_;
  const NfsStateOptions options_;
  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, TimePoint> lost_ MR_GUARDED_BY(mutex_);  // And when.
};

}  // namespace millrace
