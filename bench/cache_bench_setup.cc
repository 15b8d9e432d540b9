#include "bench/cache_bench_setup.h"

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
    Mutex mutex;
    CondVar answered;
    std::optional<Result<Slice>> result;
  };
  // Two words to capture, so that the callback needs no memory of its own.
  Answer answer;
  cache.read(context, object, range,
             Completion<Slice>(inline_executor(), [&answer](Result<Slice> result) {
               MutexLock lock(answer.mutex);
               answer.result.emplace(std::move(result));
               answer.answered.notify_all();
             }));
  MutexLock lock(answer.mutex);
  while (!answer.result)
    answer.answered.wait(answer.mutex);
  return require(std::move(*answer.result));
}

}  // namespace millrace::bench
