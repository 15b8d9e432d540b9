#include "frontends/nfs4/nfs_reclaimers.h"

#include <vector>

#include "base/log.h"

namespace millrace {

NfsReclaimers::NfsReclaimers(NfsClientRecords& records, const NfsStateOptions& options,
                             Clock& clock)
    : records_(records), options_(options), clock_(clock) {
  for (const std::string& owner : records.owners())
    add(owner);
}

void NfsReclaimers::record(const std::string& owner) {
  if (const Status status = records_.add(owner); !status.ok())
    log_warn("an NFS client could not be recorded", {{"error", status.to_string()}});
}

bool NfsReclaimers::take(const std::string& owner) {
  MutexLock lock(mutex_);
  return lost_.erase(owner) > 0;
}

void NfsReclaimers::add(const std::string& owner) {
  MutexLock lock(mutex_);
  lost_.insert_or_assign(owner, clock_.now());
}

void NfsReclaimers::forget(const std::string& owner) {
  {
    MutexLock lock(mutex_);
    lost_.erase(owner);
  }
  if (const Status status = records_.remove(owner); !status.ok())
    log_warn("an NFS client's record could not be removed", {{"error", status.to_string()}});
}

void NfsReclaimers::sweep() {
  std::vector<std::string> late;
  {
    MutexLock lock(mutex_);
    for (const auto& [owner, when] : lost_) {
      if (clock_.now() - when > options_.courtesy ||
          lost_.size() - late.size() > options_.clients_max) {
        late.push_back(owner);
      }
    }
  }
  for (const std::string& owner : late) {
    // Not when it has come back meanwhile.
    if (take(owner)) forget(owner);
  }
}

}  // namespace millrace
