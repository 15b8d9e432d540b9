#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "cache/disk_block_cache.h"
#include "frontends/fuse/fuse_mount.h"
#include "frontends/fuse/fuse_session.h"
#include "platform/file.h"
#include "platform/posix_disk.h"
#include "tests/dataset/publish_world.h"
#include "vfs/buckets_tree.h"
#include "vfs/file_system.h"

namespace millrace {

// Published versions, a gateway's tree over them with its cache on a real disk, and a real mount of
// a part of it. The service can be ended without ending the mount, as a kill does.
class FuseWorld : public PublishWorld {
 public:
  // After which a call ends by itself: longer than any test waits for one that has to end earlier.
  static constexpr Duration kCallTimeout = std::chrono::minutes(2);

  FuseWorld() { open_gateway(); }
  ~FuseWorld() { unmount(); }

  // At /buckets/live; and as the gateway reaches it.
  const std::shared_ptr<MemoryObjectStore> live = std::make_shared<MemoryObjectStore>();
  const std::shared_ptr<FaultyObjectStore> live_faulty =
      std::make_shared<FaultyObjectStore>(live, no_faults(), system_clock(), pool);
  // Of what is known of it; shorter than the kernel keeps names.
  static constexpr Duration kBucketLifetime = std::chrono::milliseconds(100);

  FileSystem& files() { return gateway_->files; }
  // All that was asked of the registry counts as old.
  void age_lists() { gateway_->datasets.ask_again(); }
  Metrics& metrics() { return gateway_->metrics; }
  FuseConnection& connection() { return session_->connection(); }
  // Of the file system that is mounted.
  const std::string& number() const { return number_; }
  std::string mounted(std::string_view path = "") const {
    return path.empty() ? target_.root() : target_.path(path);
  }
  std::uint64_t requests(FuseMetricOperation operation) {
    return metrics()
        .counter(MetricId::kFuseRequests, {static_cast<std::size_t>(operation)})
        .value();
  }

  // A part of the tree: "datasets/a/v1". `start` may do it in another way than usual.
  void mount(
      std::string_view path, FuseOpening opening,
      const std::function<void(FuseSession&)>& start = [](FuseSession& made) {
        const Status started = made.start();
        EXPECT_TRUE(started.ok()) << started.to_string();
      }) {
    const NodeAttributes root = files().resolve(context, path).value();
    view_ = {.root = root.number,
             .is_immutable = place_of(root.number) == NodePlace::kVersion,
             .opening = opening,
             .uid = ::geteuid(),
             .gid = ::getegid()};
    Result<MadeFuse> made = make_fuse({.source = "millrace:test", .directory = target_.root()});
    ASSERT_TRUE(made) << made.error().to_string();
    const Status placed = place_fuse(*made, target_.root());
    ASSERT_TRUE(placed.ok()) << placed.to_string();
    OpenTable opens = OpenTable::create().value();
    kept_device_ = File::adopt(::dup(made->device.descriptor()), "kept device");
    kept_opens_ = File::adopt(::dup(opens.descriptor()), "kept opens");
    make_session(FuseDevice(std::move(made->device)), std::move(opens));
    start(*session_);
    raise_readahead(made->number);
    number_ = made->number;
  }
  // What a killed daemon leaves: the mount, and what the keeper holds of it.
  void end_service() { session_.reset(); }
  FuseDevice kept_device() const {
    return FuseDevice(File::adopt(::dup(kept_device_.descriptor()), "device"));
  }
  OpenTable kept_opens() const {
    return OpenTable::adopt(File::adopt(::dup(kept_opens_.descriptor()), "opens")).value();
  }
  // What the next daemon does with that. Its cache and its tree start anew too.
  void take_over() {
    open_gateway();
    make_session(kept_device(), kept_opens());
    const Status taken = session_->take_over();
    ASSERT_TRUE(taken.ok()) << taken.to_string();
  }
  void unmount() {
    if (!kept_device_.is_open()) return;
    const Status status = detach_fuse(number_);
    EXPECT_TRUE(status.ok()) << status.to_string();
    kept_device_.close();
    session_.reset();
  }

  // Opens a file that is cached, or is about to be, once it is handed to the kernel: the release of
  // who had it open before comes when it comes.
  File open_handed_over(std::string_view name) {
    const std::size_t before = connection().files.backings();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (;;) {
      File file = File::open(mounted(name), O_RDONLY).value();
      if (connection().files.backings() > before) return file;
      EXPECT_LT(std::chrono::steady_clock::now(), deadline) << name << " is not handed over";
      if (std::chrono::steady_clock::now() > deadline) return file;
      file = File();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // The file by one descriptor from its beginning to its end, in reads of this size.
  static std::string read_file_by(const std::string& path, std::size_t piece, int flags = 0) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
    EXPECT_GE(fd, 0) << path << ": " << std::strerror(errno);
    if (fd < 0) return "";
    // Aligned as O_DIRECT wants it.
    const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, piece),
                                                             &std::free);
    std::string whole;
    ssize_t got = 0;
    while ((got = ::read(fd, memory.get(), piece)) > 0)
      whole.append(static_cast<const char*>(memory.get()), static_cast<std::size_t>(got));
    EXPECT_EQ(got, 0) << path << ": " << std::strerror(errno);
    ::close(fd);
    return whole;
  }

 private:
  struct Gateway {
    explicit Gateway(FuseWorld& world)
        : manifests(*world.faulty, world.state.path("opened")),
          cache(open_cache(world, metrics, fetches)),
          numbers(TreeNumbers::open(world.disk_, world.state.path("trees"), "store").value()),
          versions({.registry = world.registry,
                    .manifests = manifests,
                    .numbers = *numbers,
                    .store = StoreId("memory://fuse"),
                    .reads = {.cache = *cache, .buffers = world.buffers, .work = world.work_}}),
          datasets(world.registry, versions, system_clock(), {.executor = &refreshes}),
          paths(NodePaths::open(world.disk_, world.state.path("nodes")).value()),
          buckets({.paths = *paths, .cache = *cache, .clock = system_clock(), .requests = requests},
                  {{.name = "live", .store = world.live_faulty, .id = StoreId("memory://live")}},
                  {.lifetime = kBucketLifetime, .refresh = {.executor = &refreshes}}),
          files(datasets, versions, &buckets, {}) {}

    static std::unique_ptr<DiskBlockCache> open_cache(FuseWorld& world, Metrics& metrics,
                                                      ThreadPool& fetches) {
      BlockCacheOptions options;
      options.directories.push_back({.path = world.state.path("cache"), .quota_bytes = kGiB});
      auto cache = DiskBlockCache::open({.disk = world.disk_,
                                         .clock = system_clock(),
                                         .disk_executor = world.work_,
                                         .fetch_executor = fetches,
                                         .buffers = world.buffers,
                                         .metrics = metrics},
                                        std::move(options));
      EXPECT_TRUE(cache);
      (*cache)->add_store(StoreId("memory://fuse"), world.faulty);
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

  void open_gateway() {
    gateway_.reset();
    gateway_ = std::make_unique<Gateway>(*this);
  }
  void make_session(FuseDevice device, OpenTable opens) {
    session_ = std::make_unique<FuseSession>(std::move(device), std::move(opens), view_,
                                             FuseParts{.tree = files(),
                                                       .clock = system_clock(),
                                                       .late_answers = work_,
                                                       .metrics = metrics(),
                                                       .callers = callers_,
                                                       .timeout = kCallTimeout});
  }

  const ScratchTree target_;
  PosixDisk disk_;
  ThreadPool work_{{.name = "work", .threads = 4, .queued_tasks_max = 1024}};
  FuseCallers callers_;
  std::unique_ptr<Gateway> gateway_;
  FuseView view_;
  std::string number_;
  File kept_device_;
  File kept_opens_;
  std::unique_ptr<FuseSession> session_;
};

}  // namespace millrace
