#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/application.h"
#include "base/clock.h"
#include "base/thread_pool.h"
#include "cache/disk_block_cache.h"
#include "dataset/manifest_store.h"
#include "dataset/registry.h"
#include "platform/event_loop.h"
#include "platform/posix_disk.h"
#include "service/cached_versions.h"
#include "service/failed_samples.h"
#include "service/preloads.h"
#include "service/usage.h"
#include "vfs/buckets_tree.h"
#include "vfs/file_system.h"
#include "vfs/node_paths.h"
#include "vfs/tree_numbers.h"

namespace millrace {

// All that serves files, put together: the store, its registry, the cache, and the tree over them.
// What is kept on this machine lies in the cache's directory: blocks, manifests, tree numbers.
//
// Lifecycle: open() makes it, and needs no answer of the store; destruction waits for reads under
// way. What uses it is stopped before. All methods are safe from any thread.
class Gateway {
 public:
  // `missing` says what to do about a store that is a directory and is not there. kConflict names
  // the process that has the cache already. The application outlives it.
  static Result<std::unique_ptr<Gateway>> open(Application& application, MissingRoot missing);
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  Application& application() { return application_; }
  const Settings& settings() const { return application_.settings(); }
  Metrics& metrics() { return application_.metrics(); }
  BufferPool& buffers() { return application_.buffers(); }
  Clock& clock() { return system_clock(); }
  Disk& disk() { return disk_; }
  // Where what is kept lies: files of other parts go beside it.
  const std::string& directory() const { return settings().cache; }

  // Sockets. Nothing on it may block.
  EventLoop& net() { return net_; }
  // Answers requests, and may block.
  Executor& work() { return work_; }
  // Writes answers of reads. Nothing on it may wait for a store: reads of what is cached go on.
  Executor& late_answers() { return late_answers_; }
  // Answers what is asked of the daemon itself, at once: nothing on it waits for a store.
  Executor& control() { return control_; }
  // Clients wait for them for as long as it takes: looks at all that is cached, and starts of
  // preloads, one at a time. Nothing else is held up by them.
  Executor& long_requests() { return long_requests_; }
  Executor& preload_starts() { return preload_starts_; }

  ObjectStore& store() { return *store_; }
  const StoreId& store_id() const { return store_id_; }
  const Registry& registry() const { return registry_; }
  ManifestStore& manifests() { return manifests_; }
  BlockCache& cache() { return *cache_; }
  bool cache_is_encrypted() const { return !settings().cache_key_file.empty(); }
  VersionTrees& versions() { return trees_->versions; }
  DatasetsTree& datasets() { return trees_->datasets; }
  FileSystem& files() { return trees_->files; }
  Usage& usage() { return *usage_; }
  FailedSamples& failed_samples() { return *failed_samples_; }
  Preloads& preloads() { return *preloads_; }
  CachedVersions& cached_versions() { return *cached_versions_; }

 private:
  // What clients see, lowest first.
  struct Trees {
    explicit Trees(Gateway& gateway);

    VersionTrees versions;
    DatasetsTree datasets;
    std::unique_ptr<BucketsTree> buckets;  // Null where none is to be shown.
    FileSystem files;
  };

  Gateway(Application& application, std::shared_ptr<ObjectStore> store);
  Status open_cache();
  Status open_buckets();
  Status open_services();

  // In the order in which they depend on each other.
  Application& application_;
  PosixDisk disk_;
  EventLoop net_{"net"};
  ThreadPool disk_pool_;
  ThreadPool fetch_;
  ThreadPool work_;
  ThreadPool late_answers_;
  ThreadPool control_;
  ThreadPool saves_;
  ThreadPool long_requests_;
  ThreadPool preload_starts_;
  ThreadPool bucket_requests_;
  ThreadPool refreshes_;
  ThreadPool bucket_refreshes_;
  const std::shared_ptr<ObjectStore> store_;
  const StoreId store_id_;
  const Registry registry_;
  ManifestStore manifests_;
  std::unique_ptr<DiskBlockCache> cache_;
  std::unique_ptr<TreeNumbers> numbers_;
  std::unique_ptr<NodePaths> node_paths_;
  std::vector<BucketExport> exports_;
  std::unique_ptr<Usage> usage_;
  std::unique_ptr<FailedSamples> failed_samples_;
  std::unique_ptr<Trees> trees_;
  std::unique_ptr<Preloads> preloads_;
  std::unique_ptr<CachedVersions> cached_versions_;
};

}  // namespace millrace
