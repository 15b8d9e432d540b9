#include "bench/cache_bench_setup.h"

#include <atomic>
#include <optional>
#include <utility>

#include "bench/bench_store.h"

namespace millrace::bench {
namespace {

const StoreId kBenchStore("bench");

}  // namespace

CacheBenchSetup::CacheBenchSetup(CacheBenchOptions options)
    : pool_({.bytes_max = options.pool_bytes, .idle_bytes_max = options.pool_bytes / 2}) {
  options.cache.directories.push_back(
      {.path = std::move(options.directory), .quota_bytes = options.quota_bytes});
  cache_ = require(DiskBlockCache::open({.disk = disk_,
                                         .clock = system_clock(),
                                         .disk_executor = disk_pool_,
                                         .fetch_executor = fetch_pool_,
                                         .buffers = pool_,
                                         .metrics = metrics_},
                                        std::move(options.cache)));
}

CacheBenchSetup::~CacheBenchSetup() = default;

std::uint64_t CacheBenchSetup::fetched_bytes() {
  return metrics_.counter(MetricId::kCacheFetchedBytes, {0}).value() +
         metrics_.counter(MetricId::kCacheFetchedBytes, {1}).value();
}

ObjectVersion CacheBenchSetup::object(const std::string& key, const std::string& identity,
                                      std::uint64_t size) {
  return ObjectVersion(kBenchStore, ObjectKey(key), ObjectIdentity(identity), size);
}

void CacheBenchSetup::add_store(std::shared_ptr<ObjectStore> store) {
  cache_->add_store(kBenchStore, std::move(store));
}

Slice read_now(DiskBlockCache& cache, const RequestContext& context, const ObjectVersion& object,
               ByteRange range) {
  struct Answer {
    std::optional<Result<Slice>> result;
    std::atomic<bool> there = false;
  };
  // One word to capture, so that the callback needs no memory of its own.
  Answer answer;
  cache.read(context, object, range,
             Completion<Slice>(inline_executor(), [&answer](Result<Slice> result) {
               answer.result.emplace(std::move(result));
               answer.there.store(true, std::memory_order_release);
               answer.there.notify_one();
             }));
  answer.there.wait(false, std::memory_order_acquire);
  return require(std::move(*answer.result));
}

}  // namespace millrace::bench
