#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/request_context.h"
#include "base/status.h"
#include "cache/block_cache.h"
#include "dataset/version_ref.h"
#include "service/preload_plan.h"
#include "service/preloads.h"
#include "vfs/datasets_tree.h"
#include "vfs/version_trees.h"

namespace millrace {

// How much of a version is cached. What several versions share counts for each of them.
struct CachedVersion {
  VersionRef ref;
  std::uint64_t total_bytes = 0;  // Of its objects.
  std::uint64_t cached_bytes = 0;
  // Until when a preload has leased all or some of it.
  std::optional<WallTime> leased_until = {};
};

struct DroppedVersion {
  std::uint64_t bytes = 0;
  std::uint64_t busy_objects = 0;  // Stayed, because they are being fetched just now.
};

// The cache by versions, where the cache itself knows objects only. All methods block, for as long
// as it takes to look at every object of a version, and are safe from any thread. What it is made
// with outlives it.
class CachedVersions {
 public:
  CachedVersions(VersionTrees& versions, DatasetsTree& datasets, BlockCache& cache,
                 Preloads& preloads, Clock& clock)
      : versions_(versions),
        datasets_(datasets),
        cache_(cache),
        preloads_(preloads),
        clock_(clock) {}

  // Those of which something is cached or leased, in the order of their names. One whose manifest
  // cannot be read is left out, and reported.
  Result<std::vector<CachedVersion>> list(const RequestContext& context);
  // Takes its objects off the disk, also those that it shares. kConflict when a preload holds them
  // or is under way.
  Result<DroppedVersion> drop(const RequestContext& context, const VersionRef& ref);
  // Holds what is cached of it against its checksums. What is bad is forgotten.
  Result<CheckReport> verify(const RequestContext& context, const VersionRef& ref);

 private:
  // Null when its manifest was never opened on this machine.
  Result<std::shared_ptr<VersionTree>> find_here(const RequestContext& context, TreeNumber number);
  Result<CachedVersion> measure(const RequestContext& context, VersionTree& tree);
  Result<PreloadPlan> all_of(const RequestContext& context, VersionTree& tree);

  VersionTrees& versions_;
  DatasetsTree& datasets_;
  BlockCache& cache_;
  Preloads& preloads_;
  Clock& clock_;
};

}  // namespace millrace
