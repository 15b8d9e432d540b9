#include "tests/cache/cache_simulation_world.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "base/checksum.h"

namespace millrace {
namespace {

// The first one is "/cache".
std::string simulated_directory(int number) {
  return number == 0 ? "/cache" : "/cache" + std::to_string(number + 1);
}

const StoreId kSimulatedStore("memory://simulation");

// Cheap enough for tens of megabytes without optimisation, and no two words alike.
std::string mixed_bytes(const std::string& name, std::uint64_t size) {
  std::uint64_t state = std::hash<std::string>{}(name) | 1;
  std::string bytes(size + 8, '\0');
  for (std::uint64_t at = 0; at < size; at += 8) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t word = state ^ (state >> 29);
    std::memcpy(bytes.data() + at, &word, 8);
  }
  bytes.resize(size);
  return bytes;
}

std::shared_ptr<const UnitChecksums> checksums_of_units(const Slice& data) {
  auto checksums = std::make_shared<UnitChecksums>();
  for (std::size_t at = 0; at < data.size(); at += kUnitBytes)
    checksums->push_back(crc32c(data.part(at, kUnitBytes).bytes()));
  return checksums;
}

// Fetches into the pool, as real stores do, and like them refuses when it is at its ceiling.
class PoolingStore final : public ObjectStore {
 public:
  PoolingStore(std::shared_ptr<ObjectStore> inner, BufferPool& buffers)
      : inner_(std::move(inner)), buffers_(buffers) {}

  void get_range(const RequestContext& context, GetRequest request,
                 Completion<GetResult> done) override {
    Result<Buffer> buffer = buffers_.try_allocate(request.range->length);
    if (!buffer) {
      done.complete(failure(buffer.error()));
      return;
    }
    inner_->get_range(
        context, std::move(request),
        Completion<GetResult>(inline_executor(), [done = std::move(done),
                                                  into = *std::move(buffer)](auto result) mutable {
          if (result) {
            std::memcpy(into.data(), result->data.data(), result->data.size());
            into.truncate(result->data.size());
            result->data = std::move(into).freeze();
          }
          done.complete(std::move(result));
        }));
  }
  Result<ObjectInfo> head(const RequestContext& context, const ObjectKey& key) override {
    return inner_->head(context, key);
  }
  Result<ListPage> list(const RequestContext& context, const ListRequest& request) override {
    return inner_->list(context, request);
  }
  Result<ObjectInfo> put(const RequestContext& context, const ObjectKey& key, Slice data,
                         const PutOptions& put_options) override {
    return inner_->put(context, key, std::move(data), put_options);
  }
  Result<std::unique_ptr<Upload>> start_upload(const RequestContext& context, const ObjectKey& key,
                                               const PutOptions& put_options) override {
    return inner_->start_upload(context, key, put_options);
  }
  Result<ObjectInfo> copy(const RequestContext& context, const ObjectInfo& source,
                          const ObjectKey& target) override {
    return inner_->copy(context, source, target);
  }
  Status remove(const RequestContext& context, std::span<const ObjectKey> keys) override {
    return inner_->remove(context, keys);
  }
  std::string describe() const override { return inner_->describe(); }

 private:
  const std::shared_ptr<ObjectStore> inner_;
  BufferPool& buffers_;
};

}  // namespace

Slice simulated_bytes(const std::string& name, std::uint64_t size) {
  static std::map<std::pair<std::string, std::uint64_t>, Slice> made;
  Slice& slice = made[{name, size}];
  if (slice.size() != size) slice = Slice::from_string(mixed_bytes(name, size));
  return slice;
}

SimulationWorld::SimulationWorld(SimulationOptions wanted)
    : options(wanted),
      disk_executor(wanted.seed),
      fetch_executor(wanted.seed == 0 ? 0 : wanted.seed + 1),
      caller_executor(wanted.seed == 0 ? 0 : wanted.seed + 2),
      memory_disk(wanted.disk_bytes),
      buffers({.bytes_max = wanted.memory_bytes_max, .idle_bytes_max = 8 * kMiB}),
      random_(wanted.seed) {
  inner_ = std::make_shared<MemoryObjectStore>(
      clock, fetch_executor, MemoryObjectStoreOptions{.latency = options.store_latency});
  requests_ = std::make_shared<RecordingObjectStore>(inner_);
  store = std::make_shared<FaultyObjectStore>(std::make_shared<PoolingStore>(requests_, buffers),
                                              no_faults(), clock, fetch_executor);
}

SimulationWorld::~SimulationWorld() {
  disk.set_fault({});
  store->set_plan(no_faults());
  if (started()) stop();
}

std::shared_ptr<SectorCipher> simulated_cipher(char digit) {
  return SectorCipher::make(SecretKey::parse(std::string(64, digit)).value()).value();
}

SimulatedObject SimulationWorld::add(const std::string& name, std::uint64_t size,
                                     bool with_checksums) {
  const Slice data = simulated_bytes(name, size);
  const auto info = inner_->put(RequestContext::background(), ObjectKey(name), data, PutOptions{});
  EXPECT_TRUE(info);
  return {ObjectVersion(kSimulatedStore, ObjectKey(name), info->identity, size,
                        with_checksums ? checksums_of_units(data) : nullptr),
          data};
}

Status SimulationWorld::start() {
  EXPECT_FALSE(started());
  BlockCacheOptions cache_options{.directories = {},
                                  .fetches = options.fetches,
                                  .readahead = options.readahead,
                                  .fetch_bytes_max = options.fetch_bytes_max,
                                  .open_objects_max = options.open_objects_max};
  for (int i = 0; i < options.directories; ++i) {
    CacheDirectoryOptions directory;
    directory.path = simulated_directory(i);
    directory.quota_bytes = options.quota_bytes;
    directory.segments.segment_bytes_max = options.segment_bytes_max;
    directory.cipher = options.cipher;
    cache_options.directories.push_back(std::move(directory));
  }
  auto cache = DiskBlockCache::open({.disk = disk,
                                     .clock = clock,
                                     .disk_executor = disk_executor,
                                     .fetch_executor = fetch_executor,
                                     .buffers = buffers,
                                     .metrics = metrics},
                                    std::move(cache_options));
  if (!cache) return cache.error();
  cache_ = *std::move(cache);
  cache_->add_store(kSimulatedStore, store);
  return {};
}

void SimulationWorld::stop() {
  drain();
  EXPECT_EQ(metrics.gauge(MetricId::kCacheFetchBytesInFlight).value(), 0);
  EXPECT_EQ(metrics.gauge(MetricId::kCacheFetchesInFlight).value(), 0);
  cache_.reset();
  EXPECT_EQ(buffers.bytes_in_use(), 0u);
}

void SimulationWorld::crash(bool power_loss) {
  disk.set_fault(fail_nth_call(0, EIO, true));
  if (power_loss) memory_disk.simulate_power_loss(random_());
  stop();
  disk.set_fault({});
}

bool SimulationWorld::step() {
  std::array<ManualExecutor*, 3> busy{};
  std::size_t count = 0;
  for (ManualExecutor* const executor : {&disk_executor, &fetch_executor, &caller_executor}) {
    if (executor->pending() > 0) busy[count++] = executor;
  }
  if (count == 0) return clock.advance_to_next_timer();
  return busy[options.seed == 0 ? 0 : random_() % count]->run_one();
}

void SimulationWorld::drain() {
  while (step()) {
  }
}

Result<Slice> SimulationWorld::read(const SimulatedObject& object, ByteRange range) {
  std::optional<Result<Slice>> answer;
  cache_->read(RequestContext::background(), object.version, range,
               Completion<Slice>(inline_executor(), [&](Result<Slice> result) {
                 EXPECT_FALSE(answer) << "answered twice";
                 answer.emplace(std::move(result));
               }));
  while (!answer) {
    if (!step()) return failure(StatusCode::kInternal, "nothing is under way: a lost answer");
  }
  return *std::move(answer);
}

::testing::AssertionResult SimulationWorld::reads_right(const SimulatedObject& object) {
  const Result<Slice> got = read(object, {0, object.version.size()});
  if (!got) return ::testing::AssertionFailure() << got.error().to_string();
  if (got->text() == object.data.text()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "wrong bytes of " << object.version.key().value();
}

std::uint64_t SimulationWorld::bad_units() {
  std::uint64_t total = 0;
  for (const CacheDamage found :
       {CacheDamage::kFetched, CacheDamage::kRead, CacheDamage::kScrubbed, CacheDamage::kIndex}) {
    total += metrics.counter(MetricId::kCacheBadUnits, {static_cast<std::size_t>(found)}).value();
  }
  return total;
}

std::vector<std::string> SimulationWorld::files(std::string_view extension) {
  std::vector<std::string> found;
  std::vector<std::string> directories;
  for (int i = 0; i < options.directories; ++i)
    directories.push_back(simulated_directory(i));
  while (!directories.empty()) {
    const std::string directory = std::move(directories.back());
    directories.pop_back();
    const auto entries = memory_disk.list(directory);
    if (!entries) continue;
    for (const DirectoryEntry& entry : *entries) {
      std::string path = directory + "/" + entry.name;
      if (entry.kind == FileKind::kDirectory) {
        directories.push_back(std::move(path));
      } else if (path.ends_with(extension)) {
        found.push_back(std::move(path));
      }
    }
  }
  std::ranges::sort(found);
  return found;
}

std::uint64_t SimulationWorld::data_bytes_on_disk() {
  std::uint64_t total = 0;
  for (const std::string_view extension : {".data", ".seg"}) {
    for (const std::string& path : files(extension))
      total += memory_disk.stat(path).value().allocated_bytes;
  }
  return total;
}

void SimulationWorld::sync_disk() {
  for (const std::string& path : files("")) {
    EXPECT_TRUE(memory_disk.open(path, OpenMode::kRead).value()->sync().ok());
    EXPECT_TRUE(memory_disk.sync_directory(path.substr(0, path.rfind('/'))).ok());
  }
}

}  // namespace millrace
