#include "tests/cache/cache_world.h"

#include <cstring>
#include <random>
#include <thread>
#include <utility>

#include "base/checksum.h"

namespace millrace {
namespace {

std::string random_content(std::string_view key, std::uint64_t size) {
  std::seed_seq seed(key.begin(), key.end());
  std::mt19937_64 random(seed);
  std::string bytes(size + 8, '\0');
  for (std::uint64_t at = 0; at < size; at += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, 8);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

CacheWorld::CacheWorld(CacheWorldOptions options)
    : memory_disk(options.disk_bytes),
      disk(options.other_disk != nullptr ? *options.other_disk : memory_disk),
      options_(options),
      buffers_({.bytes_max = options.memory_bytes_max, .idle_bytes_max = 16 * kMiB}),
      inner_(std::make_shared<MemoryObjectStore>()),
      requests_(std::make_shared<RecordingObjectStore>(inner_)) {
  store = std::make_shared<FaultyObjectStore>(requests_, no_faults(), system_clock(), fetch_pool_);
}

CacheWorld::~CacheWorld() { stop(); }

ObjectVersion CacheWorld::add(const std::string& key, std::uint64_t size, bool with_checksums) {
  std::string content = random_content(key, size);
  const auto info = inner_->put(RequestContext::background(), ObjectKey(key),
                                Slice::copy_of(content), PutOptions{});
  EXPECT_TRUE(info);
  std::shared_ptr<UnitChecksums> checksums;
  if (with_checksums) {
    checksums = std::make_shared<UnitChecksums>();
    for (std::size_t at = 0; at < content.size(); at += kUnitBytes)
      checksums->push_back(crc32c(as_bytes(std::string_view(content).substr(at, kUnitBytes))));
  }
  contents_[key] = std::move(content);
  return ObjectVersion(store_id, ObjectKey(key), info->identity, size, std::move(checksums));
}

const std::string& CacheWorld::content(const ObjectVersion& object) const {
  return contents_.at(object.key().value());
}

Status CacheWorld::start(const std::vector<CacheDirectoryOptions>& more_directories) {
  stop();
  BlockCacheOptions options;
  options.directories.push_back({.path = options_.directory, .quota_bytes = options_.quota_bytes});
  options.directories.insert(options.directories.end(), more_directories.begin(),
                             more_directories.end());
  options.readahead = options_.readahead;
  options.fetches = options_.fetches;
  options.planned_bytes_ahead_max = options_.planned_bytes_ahead_max;
  auto cache = DiskBlockCache::open({.disk = options_.faulty_disk ? disk : *options_.other_disk,
                                     .clock = system_clock(),
                                     .disk_executor = disk_pool_,
                                     .fetch_executor = fetch_pool_,
                                     .buffers = buffers_,
                                     .metrics = metrics},
                                    std::move(options));
  if (!cache) return cache.error();
  cache_ = *std::move(cache);
  cache_->add_store(store_id, store);
  return {};
}

Result<Slice> CacheWorld::read(const ObjectVersion& object, ByteRange range) {
  Waiter<Slice> waiter;
  const RequestContext context(system_clock().now() + std::chrono::seconds(30), "test");
  cache_->read(context, object, range, waiter.completion());
  return waiter.wait();
}

::testing::AssertionResult CacheWorld::reads_right(const ObjectVersion& object, ByteRange range) {
  const Result<Slice> got = read(object, range);
  if (!got) return ::testing::AssertionFailure() << got.error().to_string();
  const std::string_view wanted =
      std::string_view(content(object)).substr(range.offset, range.length);
  if (got->text() == wanted) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "wrong bytes of " << object.key().value() << " at "
                                       << range.offset << ", " << range.length << " long";
}

void CacheWorld::settle() {
  Gauge& bytes = metrics.gauge(MetricId::kCacheFetchBytesInFlight);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (bytes.value() > 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  ASSERT_EQ(bytes.value(), 0);
}

std::uint64_t CacheWorld::bytes_fetched() const {
  std::uint64_t bytes = 0;
  for (const RecordedRequest& request : requests_->requests()) {
    if (request.range) bytes += request.range->length;
  }
  return bytes;
}

std::uint64_t CacheWorld::bad_units(CacheDamage found_by) {
  return metrics.counter(MetricId::kCacheBadUnits, {static_cast<std::size_t>(found_by)}).value();
}

std::uint64_t CacheWorld::skipped(CacheSkip why) {
  return metrics.counter(MetricId::kCacheFillsSkipped, {static_cast<std::size_t>(why)}).value();
}

}  // namespace millrace
