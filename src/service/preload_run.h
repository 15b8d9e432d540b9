#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "cache/block_cache.h"
#include "service/preload.h"
#include "service/preload_plan.h"
#include "vfs/version_tree.h"

namespace millrace {

struct PreloadOptions {
  // Fetches of one preload at a time. With 4 MiB each they stay well below what the cache has in
  // flight at most, and readers' fetches come before them anyway.
  std::size_t fetches_max = 24;
  // After a failure that may pass: doubled up to the second.
  Duration pause_min = std::chrono::seconds(1);
  Duration pause_max = std::chrono::seconds(30);
  // Objects, or parts of objects, that a lease may have.
  std::size_t leased_ranges_max = 1'000'000;
  // Preloads that have not ended, and ended ones that are remembered.
  std::size_t unfinished_max = 64;
  std::size_t ended_max = 100;
};

// Whether waiting may help: the store, or the way to it, may be better later.
bool preload_may_wait_out(const Status& status);

// How far a preload has come. Safe from any thread.
class PreloadProgress {
 public:
  // Begins anew: so much is to be had in the end.
  void restart(TimePoint now, std::uint64_t total_bytes);
  // Some of it is there, and had to be fetched or not.
  void add(std::uint64_t bytes, bool fetched);
  // What it waits for; empty when it goes on.
  void set_problem(std::string problem);
  // Fills in what the progress of a running preload is.
  void describe(TimePoint now, PreloadInfo& preload) const;

 private:
  std::atomic<std::uint64_t> done_bytes_ = 0;
  std::atomic<std::uint64_t> fetched_bytes_ = 0;
  mutable Mutex mutex_;
  TimePoint started_ MR_GUARDED_BY(mutex_){};
  std::uint64_t total_bytes_ MR_GUARDED_BY(mutex_) = 0;
  std::string problem_ MR_GUARDED_BY(mutex_);
};

// One preload's work on one version: what it needs, whether that fits, its lease, and fetching it.
// All of it blocks. Not shared between threads; what it refers to outlives it.
class PreloadRun {
 public:
  struct Parts {
    BlockCache& cache;
    Clock& clock;
    const PreloadOptions& options;
  };
  PreloadRun(Parts parts, PreloadId id, PreloadRequest request, std::shared_ptr<VersionTree> tree);

  // Finds out what is needed, and whether it fits. To be called first. kNotFound when a pattern
  // matches nothing; kResourceExhausted, with the figures, when it does not fit and not even a part
  // is wanted.
  Status prepare(const RequestContext& context);
  const PreloadFit& fit() const { return fit_; }
  std::uint64_t files() const { return plan_->files(); }
  // What will be fetched or is there, which is less than wanted if only a part fits.
  std::uint64_t total_bytes() const { return total_bytes_; }

  // Grants the lease that was asked for, if any; one that it has is replaced.
  Status grant(const RequestContext& context);
  // Fetches what is missing, and keeps the lease meanwhile. Waits out failures that may pass. When
  // objects are gone because they were packed anew, it goes on with the newest layout.
  Status fetch(const RequestContext& context, PreloadProgress& progress);

  static LeaseId lease_of(const PreloadId& id) { return LeaseId("preload-" + id.value()); }

 private:
  class Fetches;

  // Shows what is taken of the plan: all of it, or what fits.
  Status visit(const PreloadPlan::Visitor& visitor) const;
  Status fetch_layout(const RequestContext& context, PreloadProgress& progress);
  Status renew(const RequestContext& context);

  const Parts parts_;
  const PreloadId id_;
  const PreloadRequest request_;
  const std::shared_ptr<VersionTree> tree_;
  std::shared_ptr<const VersionObjects> objects_;
  std::optional<PreloadPlan> plan_;
  PreloadFit fit_;
  std::uint64_t total_bytes_ = 0;
};

}  // namespace millrace
