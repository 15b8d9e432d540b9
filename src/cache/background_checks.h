#pragma once

#include <memory>
#include <set>

#include "base/executor.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "cache/cached_object.h"
#include "cache/object_version.h"
#include "cache/verifier.h"

namespace millrace {

// Checks objects that were on the disk when the process started, for somebody who wants them whole:
// that takes minutes for a large one. A piece at a time, so that reads get their turn on the disk
// threads. All methods are safe from any thread.
class BackgroundChecks {
 public:
  // Both outlive it.
  BackgroundChecks(Verifier& verifier, Executor& disk) : verifier_(verifier), disk_(disk) {}
  // Begins to check the object, unless that is under way. It is loaded.
  void start(const std::shared_ptr<CachedObject>& object);
  // Refuses new ones, and waits for the pieces under way.
  void close() { gate_.close(); }

 private:
  void check_from(const std::shared_ptr<CachedObject>& object, std::uint32_t unit);
  void end(const CachedObject& object);

  Verifier& verifier_;
  Executor& disk_;
  Gate gate_;
  Mutex mutex_;
  std::set<ObjectDigest> under_way_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
