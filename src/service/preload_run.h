#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/request_context.h"
#include "base/status.h"
#include "cache/block_cache.h"
#include "service/preload.h"
#include "service/preload_plan.h"
#include "service/preload_progress.h"
#include "vfs/version_tree.h"

namespace millrace {

struct PreloadOptions {
  // Fetches of one preload at a time. With 4 MiB each they stay well below what the cache has in
  // flight at most, and readers' fetches come before them anyway.
  std::size_t fetches_max = 24;
  // After a failure that may pass: doubled up to the second.
  Duration pause_min = std::chrono::seconds(1);
  Duration pause_max = std::chrono::seconds(30);
  // One that fails and has fetched nothing for so long goes behind the others.
  Duration patience = std::chrono::minutes(1);
  // Objects, or parts of objects, that a lease may have.
  std::size_t leased_ranges_max = 1'000'000;
  // How often the leases of those that have not ended are renewed, and what they last at least
  // then: a store may be away for longer than the lease that was asked for.
  Duration renewal_interval = std::chrono::minutes(5);
  Duration unfinished_lease_min = std::chrono::hours(1);
  // Preloads that have not ended, and ended ones that are remembered.
  std::size_t unfinished_max = 64;
  std::size_t ended_max = 100;
};

// Whether waiting may help: the store, or the way to it, may be better later.
bool preload_may_wait_out(const Status& status);

// One preload's work on one version: what it needs, whether that fits, its lease, and fetching it.
// All of it blocks. Not shared between threads; what it refers to outlives it.
class PreloadRun {
 public:
  struct Parts {
    BlockCache& cache;
    Clock& clock;
    const PreloadOptions& options;
    // After a failure that may pass: whether others are to go first. Called from any thread.
    std::function<bool()> gives_way = [] { return false; };
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

  // Grants the lease that was asked for, or else holds what is fetched, so that it does not push
  // itself out. A lease that it has is replaced. Whoever prepares it ends the lease.
  Status grant(const RequestContext& context);
  // Fetches what is missing. Waits out failures of fetches that may pass, unless it gives way. When
  // objects are gone because they were packed anew, it goes on with the newest layout. On success
  // all of it is cached, and leased or held. kResourceExhausted when it is lost again as fast as it
  // comes.
  Status fetch(const RequestContext& context, PreloadProgress& progress);
  // Whether all that is taken is cached.
  Result<bool> is_cached(const RequestContext& context) const;

  static LeaseId lease_of(const PreloadId& id) {
    return LeaseId(std::string(kLeasePrefix) + id.value());
  }
  static bool is_lease_of_preload(const LeaseId& id) {
    return id.value().starts_with(kLeasePrefix);
  }
  // How long the lease lasts while the preload has not ended.
  static Duration unfinished_lease(const PreloadOptions& options, Duration lease) {
    return std::max(lease, options.unfinished_lease_min);
  }

 private:
  class Fetches;
  static constexpr std::string_view kLeasePrefix = "preload-";

  LeaseKind lease_kind() const { return request_.lease ? LeaseKind::kPromise : LeaseKind::kHold; }
  Duration lease_lifetime() const {
    return unfinished_lease(parts_.options, request_.lease.value_or(Duration::zero()));
  }
  Status prepare_layout(const RequestContext& context);
  // Goes on with the newest layout where `status` says that something of this one is gone. False
  // when it says anything else, or there is none but this.
  Result<bool> has_newer(const RequestContext& context, const Status& status);
  Status take_what_fits(const RequestContext& context);

  // Shows what is taken of the plan: all of it, or what fits.
  Status visit(const PreloadPlan::Visitor& visitor) const;
  Status fetch_layout(const RequestContext& context, PreloadProgress& progress);
  Status fetch_newest(const RequestContext& context, PreloadProgress& progress);
  Status renew(const RequestContext& context);

  const Parts parts_;
  const PreloadId id_;
  const PreloadRequest request_;
  const std::shared_ptr<VersionTree> tree_;
  std::shared_ptr<const VersionObjects> objects_;
  std::optional<PreloadPlan> plan_;
  PreloadFit fit_;
  // Of each range of the plan in turn, where not all fits.
  std::optional<std::vector<std::uint64_t>> taken_bytes_;
  std::uint64_t total_bytes_ = 0;
};

}  // namespace millrace
