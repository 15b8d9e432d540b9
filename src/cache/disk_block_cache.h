#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/buffer_pool.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/gate.h"
#include "cache/background_checks.h"
#include "cache/block_cache.h"
#include "cache/block_read.h"
#include "cache/cache_directories.h"
#include "cache/cache_directory.h"
#include "cache/cache_leases.h"
#include "cache/fetch_queue.h"
#include "cache/filler.h"
#include "cache/object_table.h"
#include "cache/readahead.h"
#include "cache/verifier.h"
#include "metrics/metrics.h"
#include "platform/disk.h"
#include "platform/process.h"

namespace millrace {

struct BlockCacheOptions {
  std::vector<CacheDirectoryOptions> directories;
  FetchQueueOptions fetches = {};
  ReadaheadOptions readahead = {};
  // The largest single GET: a multiple of the unit.
  std::uint64_t fetch_bytes_max = kBlockBytes;
  // How far ahead of a job with a plan to fetch, to the disk: a quarter of the cache at most.
  std::uint64_t planned_bytes_ahead_max = kGiB;
  // What was fetched ahead stays in memory for its reader, up to this much.
  std::uint64_t fresh_bytes_max = 128 * kMiB;
  // Objects that are kept because they were used.
  std::size_t open_objects_max = 16384;
  // Those of them that are large, each of which has files open.
  std::size_t open_large_objects_max = large_objects_for(descriptor_limit());

  // Two files each, and a third one where it is handed out; much else of a process needs some too.
  static std::size_t large_objects_for(std::size_t descriptors) {
    constexpr std::size_t kOthers = 512;
    return (descriptors - std::min(descriptors / 2, kOthers)) / 3;
  }
};

// What the cache works with. All of it must outlive the cache.
struct BlockCacheEnvironment {
  Disk& disk;
  Clock& clock;
  Executor& disk_executor;   // Runs what blocks on a disk.
  Executor& fetch_executor;  // Runs the answers of stores: checksums, and no blocking.
  BufferPool& buffers;       // The stores should fetch into it too: then one ceiling holds for all.
  Metrics& metrics;
};

// The cache on local disks.
//
// Lifecycle: open() takes the directories and serves at once; what they hold is counted in the
// background. Destruction calls off fetches and waits for reads under way.
class DiskBlockCache final : public BlockCache {
 public:
  // kConflict when another process owns a directory, kUnsupported when a later Millrace wrote it.
  static Result<std::unique_ptr<DiskBlockCache>> open(const BlockCacheEnvironment& environment,
                                                      BlockCacheOptions options);
  ~DiskBlockCache() override;

  void add_store(const StoreId& id, std::shared_ptr<ObjectStore> store) override;
  void read(const RequestContext& context, const ObjectVersion& object, ByteRange range,
            Completion<Slice> done) override;
  Result<std::unique_ptr<CompleteObject>> open_complete(const RequestContext& context,
                                                        const ObjectVersion& object) override;
  Status warm(const RequestContext& context, const ObjectVersion& object, ByteRange range,
              Urgency urgency) override;
  void expect(const RequestContext& context, const ObjectVersion& object, ByteRange range) override;
  Status drop(const RequestContext& context, const ObjectVersion& object) override;
  Result<CheckReport> verify(const RequestContext& context, const ObjectVersion& object) override;
  Result<CheckReport> scrub(const RequestContext& context, const ScrubOptions& options) override;
  Result<std::uint64_t> cached_bytes(const RequestContext& context, const ObjectVersion& object,
                                     ByteRange range) override;
  CacheUsage usage() override;
  CacheLeases& leases() override { return leases_; }
  PlannedReads& plans() override { return plans_; }

  // Waits until all that was on the disks at the start is counted.
  void wait_for_scan();

 private:
  DiskBlockCache(const BlockCacheEnvironment& environment, const BlockCacheOptions& options,
                 std::vector<std::unique_ptr<CacheDirectory>> directories);

  // True when the read was answered.
  // Lets the reader's stream go on.
  void note_warm_read(const RequestContext& context, const std::shared_ptr<CachedObject>& object,
                      ByteRange range);
  bool read_fresh(const RequestContext& context, const std::shared_ptr<CachedObject>& object,
                  ByteRange range, Completion<Slice>& done);
  bool read_ready(const RequestContext& context, const std::shared_ptr<CachedObject>& object,
                  ByteRange range, Completion<Slice>& done);
  void touch(CachedObject& object, UnitRange units);
  Status load(const RequestContext& context, const std::shared_ptr<CachedObject>& object);
  // Has what is missing of the units on the disk, and all of them checked.
  Status fetch(const RequestContext& context, const std::shared_ptr<CachedObject>& object,
               UnitRange units, Urgency urgency);
  // Brings what is missing, or is on its way. What that took.
  Result<CachedObject::Needs> fetch_missing(const RequestContext& context,
                                            const std::shared_ptr<CachedObject>& object,
                                            UnitRange units, Urgency urgency);
  // Until all of them are on the disk, one has failed, or the context is cancelled.
  Status wait_for(const RequestContext& context, CachedObject& object,
                  const std::vector<std::shared_ptr<Flight>>& flights);
  void start_scan();
  void end_scan();

  const BlockCacheEnvironment environment_;
  const std::uint64_t expected_bytes_max_;
  Counter& hits_;
  Counter& hit_bytes_;
  Counter& fresh_hits_;
  Counter& fresh_hit_bytes_;
  Counter& scrubbed_bytes_;

  // In the order in which they depend on each other.
  FreshBytes fresh_;
  ObjectTable objects_;
  CacheDirectories directories_;
  FetchQueue fetches_;
  Filler filler_;
  Verifier verifier_;
  BackgroundChecks checks_;
  CacheLeases leases_;
  Gate gate_;  // Reads, and what they started.
  const ReadParts parts_;
  PlannedReads plans_;
  std::atomic<bool> closing_ = false;
  std::atomic<bool> scanned_ = false;
  Gate scan_;
};

}  // namespace millrace
