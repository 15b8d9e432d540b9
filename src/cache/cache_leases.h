#pragma once

#include <vector>

#include "base/clock.h"
#include "base/request_context.h"
#include "base/status.h"
#include "cache/cache_directories.h"
#include "cache/lease.h"
#include "cache/lease_size.h"

namespace millrace {

// Promises that what a job needs will not be evicted before it ends. A lease is on blocks, cached
// or not: it keeps them once they come, and fetches nothing by itself.
//
// A promise survives restarts, and ends by release, by expiry, or, when others fill the disk until
// its guard is reached and nothing else can go, loudly. All methods block and are safe from any
// thread.
class CacheLeases {
 public:
  CacheLeases(CacheDirectories& directories, Clock& clock)
      : directories_(directories), clock_(clock) {}

  // For finding out what fits before a lease of that name is asked for.
  LeaseSize size(const LeaseId& id, LeaseKind kind);
  // Grants it, or replaces the one of the same name. kResourceExhausted when it does not fit beside
  // the promises to others: then nothing is granted, and a lease of that name stays as it was.
  Status grant(const RequestContext& context, const LeaseRequest& request);
  // Lasts `lifetime` from now; a hold lasts anyway. kNotFound when it has ended.
  Status renew(const RequestContext& context, const LeaseId& id, Duration lifetime);
  // Success also when it has ended already.
  Status release(const RequestContext& context, const LeaseId& id);
  // The promises.
  std::vector<LeaseInfo> list();

 private:
  CacheDirectories& directories_;
  Clock& clock_;
};

}  // namespace millrace
