#include "daemon/gateway.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "app/times.h"
#include "base/random.h"
#include "platform/path.h"
#include "platform/process.h"
#include "platform/sector_cipher.h"

namespace millrace {
namespace {

constexpr std::size_t kFetchThreads = 2;
// They wait for the store and for disks more than they compute.
constexpr std::size_t kWorkThreads = 32;
constexpr std::size_t kLateAnswerThreads = 4;
constexpr std::size_t kControlThreads = 4;
constexpr std::size_t kLongRequestThreads = 4;
// So that one whose version cannot be had just now holds up no other.
constexpr std::size_t kPreloadStartThreads = 4;
constexpr std::size_t kBucketThreads = 8;
// Ask again for what lists and names have old answers to: while the store hangs, each waits for it.
constexpr std::size_t kRefreshThreads = 4;

// The cache's share of the memory, in the proportions of its defaults, which are for 512 MiB.
BlockCacheOptions options_for_memory(std::uint64_t memory_max_bytes) {
  const BlockCacheOptions defaults;
  const auto part = [&](std::uint64_t bytes) {
    return std::max<std::uint64_t>(bytes / kMiB * memory_max_bytes / 512, 4 * kMiB);
  };
  BlockCacheOptions options;
  options.fetches.bytes_in_flight_max = part(defaults.fetches.bytes_in_flight_max);
  options.fresh_bytes_max = part(defaults.fresh_bytes_max);
  return options;
}

Result<CacheDirectoryOptions> cache_directory(const Settings& settings, WallTime now) {
  CacheDirectoryOptions options;
  options.path = settings.cache;
  options.owner = fmt::format("{}, since {}, at {}", describe_this_process("millrace serve"),
                              format_time(now), settings.socket);
  if (const auto* const bytes = std::get_if<std::uint64_t>(&settings.cache_size)) {
    options.quota_bytes = *bytes;
  } else {
    options.quota_share = std::get<Percentage>(settings.cache_size).percent / 100;
  }
  options.free_share_min = settings.cache_free_min.percent / 100;
  if (!settings.cache_key_file.empty()) {
    MR_ASSIGN_OR_RETURN(const SecretKey key, SecretKey::load(settings.cache_key_file));
    MR_ASSIGN_OR_RETURN(options.cipher, SectorCipher::make(key));
  }
  return options;
}

}  // namespace

Gateway::Trees::Trees(Gateway& gateway)
    : versions({.registry = gateway.registry_,
                .manifests = gateway.manifests_,
                .numbers = *gateway.numbers_,
                .store = gateway.store_id_,
                .reads = {.cache = *gateway.cache_,
                          .buffers = gateway.buffers(),
                          .work = gateway.work_,
                          .other_stores =
                              [&application = gateway.application_](const std::string& url) {
                                return application.other_store(url);
                              },
                          .observer = gateway.usage_.get()}}),
      datasets(gateway.registry_, versions, gateway.clock(), {.executor = &gateway.refreshes_}),
      buckets(gateway.exports_.empty()
                  ? nullptr
                  : std::make_unique<BucketsTree>(
                        BucketsTree::Parts{.paths = *gateway.node_paths_,
                                           .cache = *gateway.cache_,
                                           .clock = gateway.clock(),
                                           .requests = gateway.bucket_requests_,
                                           .observer = gateway.usage_.get()},
                        gateway.exports_,
                        BucketViewOptions{.lifetime = kAnswerLifetime,
                                          .refresh = {.executor = &gateway.bucket_refreshes_}})),
      files(datasets, versions, buckets.get(),
            {.require_version = gateway.settings().require_version}) {}

Gateway::Gateway(Application& application, std::shared_ptr<ObjectStore> store)
    : application_(application),
      disk_pool_({.name = "cache", .threads = application.settings().disk_threads}),
      fetch_({.name = "fetch", .threads = kFetchThreads}),
      work_({.name = "work", .threads = kWorkThreads}),
      late_answers_({.name = "answers", .threads = kLateAnswerThreads}),
      control_({.name = "control", .threads = kControlThreads}),
      saves_({.name = "saves"}),
      long_requests_({.name = "long_requests", .threads = kLongRequestThreads}),
      preload_starts_({.name = "preload_start", .threads = kPreloadStartThreads}),
      bucket_requests_({.name = "buckets", .threads = kBucketThreads}),
      refreshes_({.name = "refresh", .threads = kRefreshThreads}),
      bucket_refreshes_({.name = "bucket_refresh", .threads = kBucketThreads}),
      store_(std::move(store)),
      store_id_(store_->describe()),
      registry_({.store = *store_,
                 .clock = system_clock(),
                 .random = system_random(),
                 .writer = this_process_writer()}),
      manifests_(*store_, join_path(application.settings().cache, "manifests")) {}

Gateway::~Gateway() = default;

Result<std::unique_ptr<Gateway>> Gateway::open(Application& application, MissingRoot missing) {
  Result<std::shared_ptr<ObjectStore>> store =
      application.store(application.settings().store, missing);
  if (!store) return failure(store.error().with_context("store"));
  std::unique_ptr<Gateway> gateway(new Gateway(application, *std::move(store)));
  if (const Status opened = gateway->open_cache(); !opened.ok()) {
    return failure(opened.with_context("cache"));
  }
  MR_RETURN_IF_ERROR(gateway->open_buckets());
  MR_ASSIGN_OR_RETURN(gateway->usage_,
                      Usage::open({.disk = gateway->disk_,
                                   .clock = gateway->clock(),
                                   .work = gateway->saves_,
                                   .path = join_path(gateway->directory(), "usage")}));
  MR_ASSIGN_OR_RETURN(
      gateway->failed_samples_,
      FailedSamples::open({.disk = gateway->disk_,
                           .clock = gateway->clock(),
                           .work = gateway->saves_,
                           .path = join_path(gateway->directory(), "failed_samples")}));
  gateway->trees_ = std::make_unique<Trees>(*gateway);
  MR_RETURN_IF_ERROR(gateway->open_services());
  return gateway;
}

Status Gateway::open_cache() {
  BlockCacheOptions options = options_for_memory(settings().memory_max_bytes);
  options.fetches.timeout = settings().timeout;
  MR_ASSIGN_OR_RETURN(options.directories.emplace_back(),
                      cache_directory(settings(), clock().wall_now()));
  MR_ASSIGN_OR_RETURN(cache_, DiskBlockCache::open({.disk = disk_,
                                                    .clock = clock(),
                                                    .disk_executor = disk_pool_,
                                                    .fetch_executor = fetch_,
                                                    .buffers = buffers(),
                                                    .metrics = metrics()},
                                                   std::move(options)));
  cache_->add_store(store_id_, store_);
  MR_ASSIGN_OR_RETURN(numbers_,
                      TreeNumbers::open(disk_, join_path(directory(), "trees"), store_id_.value()));
  return {};
}

Status Gateway::open_buckets() {
  MR_ASSIGN_OR_RETURN(node_paths_, NodePaths::open(disk_, join_path(directory(), "nodes")));
  for (const BucketSetting& bucket : settings().buckets) {
    Result<std::shared_ptr<ObjectStore>> store =
        application_.store(bucket.url, MissingRoot::kRefuse);
    if (!store) {
      return store.error().with_context(fmt::format("buckets: '{}'", bucket.name));
    }
    const StoreId id((*store)->describe());
    exports_.push_back({.name = bucket.name, .store = *std::move(store), .id = id});
  }
  return {};
}

Status Gateway::open_services() {
  MR_ASSIGN_OR_RETURN(preloads_, Preloads::open({.datasets = datasets(),
                                                 .cache = cache(),
                                                 .disk = disk_,
                                                 .clock = clock(),
                                                 .random = system_random(),
                                                 .directory = join_path(directory(), "preloads"),
                                                 .observer = usage_.get()}));
  cached_versions_ =
      std::make_unique<CachedVersions>(versions(), datasets(), cache(), *preloads_, clock());
  return {};
}

}  // namespace millrace
