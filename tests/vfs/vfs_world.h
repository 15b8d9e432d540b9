#pragma once

#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "cache/disk_block_cache.h"
#include "metrics/metrics.h"
#include "platform/memory_disk.h"
#include "tests/dataset/publish_world.h"
#include "vfs/buckets_tree.h"
#include "vfs/file_system.h"

namespace millrace {

// A store with published versions, and a gateway's tree over it that can be restarted. What is kept
// over a restart: the cache, the manifests, the numbers of trees and the paths of nodes. Without
// exports there is no /buckets.
class VfsWorld : public PublishWorld {
 public:
  explicit VfsWorld(FileSystemPolicy policy = {}, std::vector<BucketExport> exports = {},
                    BucketViewOptions views = {})
      : policy_(policy), exports_(std::move(exports)), views_(views) {
    start();
  }

  void start() {
    stop();
    gateway_ = std::make_unique<Gateway>(*this);
  }
  void stop() { gateway_.reset(); }
  // From the next start on.
  ReadObserver* observer = nullptr;
  std::uint64_t cache_bytes = kGiB;
  // Of the cache, and of what works with it.
  Clock* cache_clock = &system_clock();
  // Real time, so that no answer is taken for missing on a slow machine.
  Duration patience = std::chrono::minutes(1);

  FileSystem& files() { return gateway_->files; }
  DiskBlockCache& cache() { return *gateway_->cache; }
  BucketsTree& buckets() { return gateway_->buckets; }
  VersionTrees& versions() { return gateway_->versions; }
  DatasetsTree& datasets() { return gateway_->datasets; }
  MemoryDisk& disk() { return disk_; }
  Executor& work() { return work_; }
  Metrics& metrics() { return gateway_->metrics; }
  // The time of the tree alone, not of the store.
  ManualClock& clock() { return clock_; }

  NodeAttributes at(std::string_view path) {
    const Result<NodeAttributes> found = files().resolve(context, path);
    EXPECT_TRUE(found) << path << ": " << (found ? "" : found.error().to_string());
    return found ? *found : NodeAttributes();
  }
  Result<std::string> read(NodeNumber file, ByteRange range) {
    MR_ASSIGN_OR_RETURN(const std::shared_ptr<OpenFile> opened, files().open(context, file));
    return read(*opened, range);
  }
  Result<std::string> read(OpenFile& file, ByteRange range) {
    Waiter<Slice> waiter;
    file.read(context, range, waiter.completion());
    MR_ASSIGN_OR_RETURN(const Slice bytes, waiter.wait());
    return std::string(bytes.text());
  }
  std::vector<std::string> names(NodeNumber directory) {
    std::vector<std::string> shown;
    EXPECT_TRUE(files()
                    .read_directory(context, directory, 0,
                                    [&](const NodeEntry& entry) {
                                      shown.emplace_back(entry.name);
                                      return true;
                                    })
                    .ok());
    return shown;
  }
  // Where registered objects may lie besides.
  StoreResolver other_stores() {
    return [this](const std::string& url) -> Result<std::shared_ptr<ObjectStore>> {
      if (url != "memory://other") return refuse_other_stores(url);
      return std::shared_ptr<ObjectStore>(other);
    };
  }
  // Another store, at "memory://other".
  const std::shared_ptr<MemoryObjectStore> other = std::make_shared<MemoryObjectStore>();

  // Everything below a directory, in the manner of PublishWorld::contents().
  void walk(NodeNumber directory, const std::string& path,
            std::map<std::string, std::string>& found) {
    found[path + "/"] = "";
    const Status status =
        files().read_directory(context, directory, 0, [&](const NodeEntry& entry) {
          const std::string child =
              path.empty() ? std::string(entry.name) : path + "/" + std::string(entry.name);
          const NodeAttributes looked_up = files().lookup(context, directory, entry.name).value();
          EXPECT_EQ(looked_up.number, entry.attributes.number);
          EXPECT_EQ(looked_up.kind, entry.attributes.kind);
          EXPECT_TRUE(!entry.has_attributes || looked_up == entry.attributes) << entry.name;
          EXPECT_EQ(files().parent(context, entry.attributes.number).value(), directory);
          switch (entry.attributes.kind) {
            case NodeKind::kDirectory:
              walk(entry.attributes.number, child, found);
              break;
            case NodeKind::kSymlink:
              found[child + "@"] = files().read_link(context, entry.attributes.number).value();
              break;
            case NodeKind::kFile:
              found[child] =
                  read(entry.attributes.number, {0, entry.attributes.size}).value_or("unreadable");
              break;
          }
          return true;
        });
    EXPECT_TRUE(status.ok()) << status.to_string();
  }

 private:
  // The parts of a gateway, in the order in which they depend on each other.
  struct Gateway {
    explicit Gateway(VfsWorld& world)
        : manifests(*world.faulty, world.state.path("opened")),
          cache(open_cache(world, metrics, fetches)),
          numbers(TreeNumbers::open(world.disk_, "/state/trees", "store").value()),
          versions({.registry = world.registry,
                    .manifests = manifests,
                    .numbers = *numbers,
                    .store = StoreId("memory://vfs"),
                    .reads = {.cache = *cache,
                              .buffers = world.buffers,
                              .work = world.work_,
                              .other_stores = world.other_stores(),
                              .observer = world.observer}}),
          datasets(world.registry, versions, world.clock_, refresh(world)),
          paths(NodePaths::open(world.disk_, "/state/nodes").value()),
          buckets({.paths = *paths,
                   .cache = *cache,
                   .clock = world.clock_,
                   .requests = requests,
                   .observer = world.observer},
                  world.exports_, views(world)),
          files(datasets, versions, world.exports_.empty() ? nullptr : &buckets, world.policy_) {}

    RecentRefresh refresh(const VfsWorld& world) {
      return {.executor = &refreshes, .patience = world.patience};
    }
    BucketViewOptions views(const VfsWorld& world) {
      BucketViewOptions options = world.views_;
      options.refresh = refresh(world);
      return options;
    }
    static std::unique_ptr<DiskBlockCache> open_cache(VfsWorld& world, Metrics& metrics,
                                                      ThreadPool& fetches) {
      BlockCacheOptions options;
      options.directories.push_back({.path = "/cache", .quota_bytes = world.cache_bytes});
      auto cache = DiskBlockCache::open({.disk = world.disk_,
                                         .clock = *world.cache_clock,
                                         .disk_executor = world.work_,
                                         .fetch_executor = fetches,
                                         .buffers = world.buffers,
                                         .metrics = metrics},
                                        std::move(options));
      EXPECT_TRUE(cache);
      (*cache)->add_store(StoreId("memory://vfs"), world.faulty);
      return *std::move(cache);
    }

    Metrics metrics;
    ThreadPool fetches{{.name = "fetch", .threads = 2, .queued_tasks_max = 1024}};
    ThreadPool requests{{.name = "requests", .threads = 2, .queued_tasks_max = 1024}};
    ThreadPool refreshes{{.name = "refresh", .threads = 2, .queued_tasks_max = 1024}};
    ManifestStore manifests;
    std::unique_ptr<DiskBlockCache> cache;
    std::unique_ptr<TreeNumbers> numbers;
    VersionTrees versions;
    DatasetsTree datasets;
    std::unique_ptr<NodePaths> paths;
    BucketsTree buckets;
    FileSystem files;
  };

  static std::unique_ptr<MemoryDisk> disk_with_state() {
    auto disk = std::make_unique<MemoryDisk>();
    EXPECT_TRUE(disk->make_directories("/state").ok());
    return disk;
  }

  const FileSystemPolicy policy_;
  const std::vector<BucketExport> exports_;
  const BucketViewOptions views_;
  ManualClock clock_;
  const std::unique_ptr<MemoryDisk> disk_owner_ = disk_with_state();
  MemoryDisk& disk_ = *disk_owner_;
  ThreadPool work_{{.name = "work", .threads = 4, .queued_tasks_max = 1024}};
  std::unique_ptr<Gateway> gateway_;
};

}  // namespace millrace
