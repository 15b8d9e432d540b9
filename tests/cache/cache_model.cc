#include "tests/cache/cache_model.h"

#include <unistd.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "platform/posix_disk.h"
#include "tests/cache/cache_world.h"
#include "tests/servers/torture.h"

namespace millrace {
namespace {

constexpr unsigned kModelThreads = 8;
constexpr std::uint64_t kModelQuota = 24 * kMiB;
// Restarts, and what fails, change from round to round.
constexpr std::uint64_t kReadsPerRound = 2500;

class ModelRun {
 public:
  explicit ModelRun(std::uint64_t seed) : random_(seed) {
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t size = 1 + random_() % (std::uint64_t{1} << (random_() % 21));
      objects_.push_back(world_.add(fmt::format("small-{}", i), size, i % 2 == 0));
    }
    // Of all sizes whatever the seed: together nearly twice what fits, so that much is evicted.
    for (std::uint64_t i = 0; i < 8; ++i) {
      const std::uint64_t size = kMiB + 1 + i * kMiB + random_() % (2 * kMiB);
      objects_.push_back(world_.add(fmt::format("large-{}", i), size, i % 2 == 0));
    }
  }

  void run(std::uint64_t reads) {
    start();
    while (reads_ < reads && !::testing::Test::HasFailure())
      round();
    world_.disk.set_fault({});
    world_.store->set_plan(no_faults());
    start();
    for (const ObjectVersion& object : objects_)
      EXPECT_TRUE(world_.reads_right(object));
    world_.settle();
    EXPECT_LE(world_.cache().usage().used_bytes, kModelQuota);
    world_.stop();
    EXPECT_EQ(world_.buffers().bytes_in_use(), 0u);
    EXPECT_GT(figures().evicted_blocks, reads / 1000);
    EXPECT_GT(hits(CacheSource::kDisk), reads / 10);
    EXPECT_LT(failed_, reads_ / 5);
  }

  CacheModelFigures figures() {
    return {.reads = reads_,
            .failed_reads = failed_,
            .evicted_blocks = world_.metrics.counter(MetricId::kCacheEvictedBlocks).value(),
            .restarts = restarts_};
  }

 private:
  std::uint64_t hits(CacheSource source) {
    return world_.metrics.counter(MetricId::kCacheReads, {static_cast<std::size_t>(source)})
        .value();
  }

  void start() {
    faults_before_start_ = world_.disk.faults();
    ASSERT_TRUE(world_.start().ok());
  }

  void round() {
    const bool disk_fails = set_disk_faults();
    set_store_faults();
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kModelThreads; ++i) {
      threads.emplace_back([this, seed = random_()] {
        std::mt19937_64 random(seed);
        for (std::uint64_t n = 0; n < kReadsPerRound / kModelThreads; ++n)
          act(random);
      });
    }
    for (std::thread& thread : threads)
      thread.join();
    // After a failed write the cache leaves the disk alone for longer than the test has time.
    if (disk_fails || random_() % 3 == 0) {
      if (random_() % 2 == 0) world_.disk.set_fault({});
      world_.stop();
      world_.disk.set_fault({});
      start();
      ++restarts_;
    }
  }

  bool set_disk_faults() {
    switch (random_() % 8) {
      case 0:
        world_.disk.set_fault(fail_randomly(0.01, random_(), EIO));
        return true;
      case 1:
        world_.disk.set_fault(fail_randomly(0.1, random_(), ENOSPC));
        return true;
      case 2:
      case 3:
      case 4:
        // Slow: much happens between the decision to read, write or free, and the call.
        world_.disk.set_fault(
            [calls = std::make_shared<std::atomic<std::uint64_t>>(0)](const DiskCall& call) {
              if (call.operation >= DiskOperation::kRead && ++*calls % 8 == 0) {
                std::this_thread::sleep_for(std::chrono::microseconds(500));
              }
              return 0;
            });
        return false;
      default:
        world_.disk.set_fault({});
        return false;
    }
  }

  void set_store_faults() {
    store_fails_ = random_() % 4 == 0;
    if (!store_fails_) return world_.store->set_plan(no_faults());
    world_.store->set_plan(random_faults(
        random_(), {{0.02, {.kind = Fault::Kind::kFailBefore}},
                    {0.02, {.kind = Fault::Kind::kThrottle}},
                    {0.05, {.kind = Fault::Kind::kDelay, .delay = std::chrono::milliseconds(2)}}}));
  }

  // ---- What a thread does

  void act(std::mt19937_64& random) {
    const ObjectVersion& object = objects_[random() % objects_.size()];
    const RequestContext context = RequestContext::background();
    switch (random() % 200) {
      case 0:
      case 1:
        (void)world_.cache().drop(context, object);
        break;
      case 2: {
        const Result<CheckReport> report = world_.cache().verify(context, object);
        EXPECT_TRUE(report);
        break;
      }
      case 3: {
        const std::uint64_t at = random() % object.size();
        // Fails when the store does, or when nothing can be kept.
        (void)world_.cache().warm(context, object, {at, 1 + random() % kMiB}, Urgency::kDemanded);
        break;
      }
      case 4:
        open_whole(object);
        break;
      default:
        read(object, random);
        break;
    }
    // A scan that could not read everything learns of the rest when it is asked for.
    const CacheUsage usage = world_.cache().usage();
    if (usage.scanned && world_.disk.faults() == faults_before_start_) {
      EXPECT_LE(usage.used_bytes, kModelQuota);
    }
  }

  void read(const ObjectVersion& object, std::mt19937_64& random) {
    ++reads_;
    const std::uint64_t at = random() % object.size();
    const ByteRange range{at, 1 + random() % (std::uint64_t{1} << (random() % 19))};
    const std::uint64_t manner = random() % 100;
    const Duration patience =
        manner == 0 ? std::chrono::microseconds(random() % 300) : std::chrono::seconds(60);
    const RequestContext context(system_clock().now() + patience, "model");
    Waiter<Slice> waiter;
    world_.cache().read(context, object, range, waiter.completion());
    if (manner == 1) context.cancellation().request();
    const Result<Slice> got = waiter.wait();
    if (got) {
      const std::string_view wanted =
          std::string_view(world_.content(object)).substr(range.offset, range.length);
      EXPECT_TRUE(got->text() == wanted)
          << "wrong bytes of " << object.key().value() << " at " << range.offset;
      return;
    }
    ++failed_;
    const Status& why = got.error();
    const bool explained =
        (manner == 0 && why == StatusCode::kDeadlineExceeded) ||
        (manner == 1 && why == StatusCode::kCancelled) ||
        (store_fails_ && (why == StatusCode::kUnavailable || why == StatusCode::kThrottled));
    EXPECT_TRUE(explained) << why.to_string();
  }

  void open_whole(const ObjectVersion& object) {
    const auto whole = world_.cache().open_complete(RequestContext::background(), object);
    if (!whole) return;
    std::string bytes((*whole)->size(), '\0');
    ASSERT_EQ(::pread((*whole)->descriptor(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_TRUE(bytes == world_.content(object));
  }

  TortureDirectory directory_;
  PosixDisk posix_disk_;
  CacheWorld world_{{.quota_bytes = kModelQuota,
                     .memory_bytes_max = 16 * kMiB,
                     .readahead = {.window_bytes_max = 4 * kMiB},
                     .other_disk = &posix_disk_,
                     .directory = directory_.path() + "/cache"}};
  std::mt19937_64 random_;
  std::vector<ObjectVersion> objects_;
  std::atomic<bool> store_fails_ = false;
  std::atomic<std::uint64_t> reads_ = 0;
  std::atomic<std::uint64_t> failed_ = 0;
  std::uint64_t restarts_ = 0;
  std::uint64_t faults_before_start_ = 0;
};

}  // namespace

CacheModelFigures run_cache_model(std::uint64_t seed, std::uint64_t reads) {
  LogCapture quiet(LogLevel::kOff);
  SCOPED_TRACE(fmt::format("MILLRACE_SEED={}", seed));
  ModelRun run(seed);
  run.run(reads);
  return run.figures();
}

}  // namespace millrace
