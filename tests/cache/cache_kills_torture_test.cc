// The cache on a real disk, killed again and again under load: each start serves what the one
// before has left, and no byte of it is wrong.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "platform/posix_disk.h"
#include "tests/cache/cache_world.h"
#include "tests/servers/child_process.h"
#include "tests/servers/torture.h"

namespace millrace {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ChildProcess;

// A file in memory, shared by all who map it.
template <class T>
T* map_file(const std::string& path, std::size_t size) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_GE(file, 0);
  EXPECT_EQ(::ftruncate(file, static_cast<off_t>(size)), 0);
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  EXPECT_NE(memory, MAP_FAILED);
  ::close(file);
  return static_cast<T*>(memory);
}

// What the children tell, also when they are killed.
struct Tally {
  std::atomic<std::uint64_t> starts;
  std::atomic<std::uint64_t> reads;
  std::atomic<std::uint64_t> disk_reads;
  std::atomic<std::uint64_t> evicted_blocks;
  std::atomic<std::uint64_t> bad_units;
};

constexpr std::uint64_t kKilledQuota = 16 * kMiB;
constexpr std::uint64_t kKilledObjects = 40;

// A third of the objects are large.
std::uint64_t killed_object_size(std::uint64_t number) {
  std::mt19937_64 random(number);
  return number % 3 == 0 ? kMiB + 1 + random() % (4 * kMiB) : 1 + random() % (300 * kKiB);
}

std::uint64_t killed_contents_bytes() {
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < kKilledObjects; ++i)
    total += killed_object_size(i);
  return total;
}

// The life of one child: a cache on what the one before it left behind.
class KilledChild {
 public:
  explicit KilledChild(const std::string& root)
      : contents_(map_file<char>(root + "/contents", killed_contents_bytes())),
        tally_(*map_file<Tally>(root + "/tally", sizeof(Tally))) {
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < kKilledObjects; ++i) {
      const std::uint64_t size = killed_object_size(i);
      const std::string_view bytes(contents_ + at, size);
      const ObjectKey key(fmt::format("object-{}", i));
      const auto info = store_->put(RequestContext::background(), key,
                                    Slice::borrow(as_bytes(bytes), nullptr), PutOptions{});
      objects_.push_back({ObjectVersion(store_id_, key, info->identity, size), bytes});
      at += size;
    }
    BlockCacheOptions options;
    options.directories.push_back({.path = root + "/cache", .quota_bytes = kKilledQuota});
    auto cache = DiskBlockCache::open({.disk = disk_,
                                       .clock = system_clock(),
                                       .disk_executor = disk_pool_,
                                       .fetch_executor = fetch_pool_,
                                       .buffers = buffers_,
                                       .metrics = metrics_},
                                      std::move(options));
    if (!cache) die("the start was refused: " + cache.error().to_string());
    cache_ = *std::move(cache);
    cache_->add_store(store_id_, store_);
    ++tally_.starts;
  }

  // Until somebody kills it.
  void read_for_ever(std::uint64_t seed) {
    std::vector<std::thread> readers;
    for (std::uint64_t i = 0; i < 4; ++i) {
      readers.emplace_back([this, seed, i] {
        std::mt19937_64 random(seed * 4 + i);
        for (;;) {
          const Object& object = objects_[random() % objects_.size()];
          const std::uint64_t at = random() % object.bytes.size();
          read(object, {at, 1 + random() % (std::uint64_t{1} << (random() % 21))});
        }
      });
    }
    for (std::thread& reader : readers)
      reader.join();
  }

  void read_all() {
    cache_->wait_for_scan();
    if (cache_->usage().used_bytes > kKilledQuota) die("the quota is exceeded");
    for (const Object& object : objects_)
      read(object, {0, object.bytes.size()});
  }

 private:
  struct Object {
    ObjectVersion version;
    std::string_view bytes;
  };

  [[noreturn]] static void die(const std::string& why) {
    fmt::print(stderr, "{}\n", why);
    std::_Exit(3);
  }

  void read(const Object& object, ByteRange range) {
    Waiter<Slice> waiter;
    const RequestContext context(system_clock().now() + seconds(60), "torture");
    cache_->read(context, object.version, range, waiter.completion());
    const Result<Slice> got = waiter.wait();
    if (!got) die("a read failed: " + got.error().to_string());
    if (got->text() != object.bytes.substr(range.offset, range.length)) {
      die(fmt::format("wrong bytes of {} at {}", object.version.key().value(), range.offset));
    }
    ++tally_.reads;
    publish(tally_.disk_reads, MetricId::kCacheReads, CacheSource::kDisk, told_disk_reads_);
    publish(tally_.bad_units, MetricId::kCacheBadUnits, CacheDamage::kRead, told_bad_units_);
    publish(tally_.bad_units, MetricId::kCacheBadUnits, CacheDamage::kIndex, told_bad_records_);
    const std::uint64_t evicted = metrics_.counter(MetricId::kCacheEvictedBlocks).value();
    tally_.evicted_blocks += evicted - told_evictions_.exchange(evicted);
  }

  template <class Label>
  void publish(std::atomic<std::uint64_t>& sum, MetricId id, Label label,
               std::atomic<std::uint64_t>& told) {
    const std::uint64_t now = metrics_.counter(id, {static_cast<std::size_t>(label)}).value();
    sum += now - told.exchange(now);
  }

  char* const contents_;
  Tally& tally_;
  const StoreId store_id_{"memory://torture"};
  PosixDisk disk_;
  Metrics metrics_;
  BufferPool buffers_{{.bytes_max = 64 * kMiB, .idle_bytes_max = 8 * kMiB}};
  ThreadPool disk_pool_{{.name = "disk", .threads = 4, .queued_tasks_max = 1024}};
  ThreadPool fetch_pool_{{.name = "fetch", .threads = 2, .queued_tasks_max = 1024}};
  const std::shared_ptr<MemoryObjectStore> store_ = std::make_shared<MemoryObjectStore>();
  std::vector<Object> objects_;
  std::atomic<std::uint64_t> told_disk_reads_ = 0;
  std::atomic<std::uint64_t> told_bad_units_ = 0;
  std::atomic<std::uint64_t> told_bad_records_ = 0;
  std::atomic<std::uint64_t> told_evictions_ = 0;
  std::unique_ptr<DiskBlockCache> cache_;
};

// Not a test: what SurvivesBeingKilled starts, over and over.
TEST(CacheTorture, DISABLED_Child) {
  const char* root = std::getenv("MILLRACE_TORTURE_ROOT");
  const char* seed = std::getenv("MILLRACE_TORTURE_SEED");
  ASSERT_TRUE(root != nullptr && seed != nullptr);
  KilledChild child(root);
  if (std::string_view(seed) == "read all") {
    child.read_all();
    return;
  }
  child.read_for_ever(std::strtoull(seed, nullptr, 10));
}

class KillLoop {
 public:
  explicit KillLoop(std::uint64_t seed) : random_(seed) {
    const std::uint64_t bytes = killed_contents_bytes();
    char* const contents = map_file<char>(root_.path() + "/contents", bytes);
    for (std::uint64_t at = 0; at + 8 <= bytes; at += 8) {
      const std::uint64_t word = random_();
      std::memcpy(contents + at, &word, 8);
    }
    ::munmap(contents, bytes);
  }

  // Kills a child at a random moment: while it starts, or 5 to 100 ms into its reading.
  void cycle() {
    const std::uint64_t starts = tally().starts;
    const auto child = start_child(std::to_string(random_()));
    const auto give_up = std::chrono::steady_clock::now() + seconds(60);
    if (random_() % 4 != 0) {
      while (tally().starts == starts && std::chrono::steady_clock::now() < give_up) {
        ASSERT_FALSE(child->wait(milliseconds(0))) << output();
      }
      ASSERT_GT(tally().starts, starts) << "it does not start: " << output();
    }
    ASSERT_FALSE(child->wait(milliseconds(5 + random_() % 96))) << output();
    child->signal(SIGKILL);
    ASSERT_EQ(child->wait(seconds(60)), 128 + SIGKILL) << output();
  }

  void read_all() {
    const auto child = start_child("read all");
    ASSERT_EQ(child->wait(seconds(120)), 0) << output();
  }

  Tally& tally() { return tally_; }

 private:
  std::unique_ptr<ChildProcess> start_child(const std::string& seed) {
    return std::make_unique<ChildProcess>(
        std::vector<std::string>{std::filesystem::read_symlink("/proc/self/exe").string(),
                                 "--gtest_filter=CacheTorture.DISABLED_Child",
                                 "--gtest_also_run_disabled_tests"},
        testing::ChildOptions{.output_file = root_.path() + "/output",
                              .environment = {{"MILLRACE_TORTURE_ROOT", root_.path()},
                                              {"MILLRACE_TORTURE_SEED", seed}}});
  }

  std::string output() {
    std::stringstream text;
    text << std::ifstream(root_.path() + "/output").rdbuf();
    return text.str();
  }

  TortureDirectory root_;
  Tally& tally_ = *map_file<Tally>(root_.path() + "/tally", sizeof(Tally));
  std::mt19937_64 random_;
};

TEST(CacheTorture, SurvivesBeingKilled) {
  const std::uint64_t seed = torture_seed();
  SCOPED_TRACE(fmt::format("MILLRACE_SEED={}", seed));
  const std::uint64_t cycles = full_torture() ? 2000 : 15;
  KillLoop loop(seed);
  std::uint64_t done = 0;
  for (; done < cycles && !::testing::Test::HasFailure(); ++done)
    loop.cycle();
  if (!::testing::Test::HasFailure()) loop.read_all();
  const Tally& tally = loop.tally();
  EXPECT_GT(tally.starts.load(), cycles / 2);
  EXPECT_GT(tally.reads.load(), cycles * 10);
  EXPECT_GT(tally.disk_reads.load(), cycles);
  EXPECT_GT(tally.evicted_blocks.load(), cycles);
  report_torture("cache_kills", seed,
                 fmt::format(R"("kills":{},"starts":{},"reads":{},"disk_reads":{},)"
                             R"("evicted_blocks":{},"bad_units":{})",
                             done, tally.starts.load(), tally.reads.load(), tally.disk_reads.load(),
                             tally.evicted_blocks.load(), tally.bad_units.load()));
}

}  // namespace
}  // namespace millrace
