#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/buffer_pool.h"
#include "base/thread_pool.h"
#include "cache/disk_block_cache.h"
#include "metrics/metrics.h"
#include "objectstore/faulty_object_store.h"
#include "objectstore/memory_object_store.h"
#include "objectstore/recording_object_store.h"
#include "platform/faulty_disk.h"
#include "platform/memory_disk.h"

namespace millrace {

struct CacheWorldOptions {
  std::uint64_t quota_bytes = kGiB;
  std::uint64_t memory_bytes_max = 256 * kMiB;
  ReadaheadOptions readahead = {};
  FetchQueueOptions fetches = {};
  std::uint64_t disk_bytes = 64 * kGiB;
  std::uint64_t planned_bytes_ahead_max = 128 * kMiB;
  // Another disk than the one in memory, which remembers all that was ever written.
  Disk* other_disk = nullptr;
  std::string directory = "/cache";
  // False: the cache works on `other_disk` itself, so that it can hand out descriptors.
  bool faulty_disk = true;
};

// A cache between a store and a disk, both in memory and breakable, with real threads. The store's
// contents are known, so every read can be compared.
class CacheWorld {
 public:
  explicit CacheWorld(CacheWorldOptions options = {});
  ~CacheWorld();

  // Puts an object of random bytes into the store. `with_checksums`: as if a manifest had them.
  ObjectVersion add(const std::string& key, std::uint64_t size, bool with_checksums = false);
  const std::string& content(const ObjectVersion& object) const;

  // Starts the cache, on what the disk has. Ends the one before, as a clean stop does.
  Status start(const std::vector<CacheDirectoryOptions>& more_directories = {});
  void stop() { cache_.reset(); }
  DiskBlockCache& cache() { return *cache_; }

  Result<Slice> read(const ObjectVersion& object, ByteRange range);
  // Reads and compares with what the store has.
  ::testing::AssertionResult reads_right(const ObjectVersion& object, ByteRange range);
  ::testing::AssertionResult reads_right(const ObjectVersion& object) {
    return reads_right(object, {0, object.size()});
  }

  // Waits until nothing is on its way to the disk.
  void settle();

  BufferPool& buffers() { return buffers_; }
  RecordingObjectStore& requests() { return *requests_; }
  std::uint64_t bytes_fetched() const;
  std::uint64_t gets() const { return requests_->count(StoreOperation::kGetRange); }
  std::uint64_t bad_units(CacheDamage found_by);
  std::uint64_t skipped(CacheSkip why);

  const StoreId store_id{"memory://test"};
  MemoryDisk memory_disk;
  FaultyDisk disk;
  Metrics metrics;
  std::shared_ptr<FaultyObjectStore> store;

 private:
  const CacheWorldOptions options_;
  ThreadPool disk_pool_{{.name = "disk", .threads = 4, .queued_tasks_max = 1024}};
  ThreadPool fetch_pool_{{.name = "fetch", .threads = 2, .queued_tasks_max = 1024}};
  BufferPool buffers_;
  std::shared_ptr<MemoryObjectStore> inner_;
  std::shared_ptr<RecordingObjectStore> requests_;
  std::map<std::string, std::string> contents_;
  std::unique_ptr<DiskBlockCache> cache_;
};

}  // namespace millrace
