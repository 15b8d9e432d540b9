#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/buffer_pool.h"
#include "base/thread_pool.h"
#include "cache/disk_block_cache.h"
#include "metrics/metrics.h"
#include "objectstore/object_store.h"
#include "platform/posix_disk.h"

namespace millrace::bench {

struct CacheBenchOptions {
  std::string directory;
  std::uint64_t quota_bytes = 64 * kGiB;
  // What DESIGN.md gives the daemon for data; the rest of its 512 MiB is for everything else.
  std::uint64_t pool_bytes = 384 * kMiB;
  BlockCacheOptions cache = {};
};

// A cache on a real directory with everything under it, as the daemon wires it.
class CacheBenchSetup {
 public:
  explicit CacheBenchSetup(CacheBenchOptions options);
  ~CacheBenchSetup();

  DiskBlockCache& cache() { return *cache_; }
  BufferPool& pool() { return pool_; }
  Metrics& metrics() { return metrics_; }
  std::uint64_t fetched_bytes();
  // An object of the store; it need not exist yet.
  static ObjectVersion object(const std::string& key, const std::string& identity,
                              std::uint64_t size);
  void add_store(std::shared_ptr<ObjectStore> store);
  // Ends the cache, before its stores go.
  void close() { cache_.reset(); }

 private:
  Metrics metrics_;
  BufferPool pool_;
  PosixDisk disk_;
  ThreadPool disk_pool_{{.name = "disk", .threads = 4, .queued_tasks_max = 4096}};
  ThreadPool fetch_pool_{{.name = "fetch", .threads = 2, .queued_tasks_max = 4096}};
  std::unique_ptr<DiskBlockCache> cache_;
};

// Reads into memory that goes at once, and waits. The fast path answers inside the call, and then
// this costs next to nothing. Throws std::runtime_error with a failure.
Slice read_now(DiskBlockCache& cache, const RequestContext& context, const ObjectVersion& object,
               ByteRange range);

}  // namespace millrace::bench
