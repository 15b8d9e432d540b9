// Many who hold what the cache has handed out, while it evicts as fast as it can.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "platform/posix_disk.h"
#include "tests/cache/cache_world.h"
#include "tests/servers/torture.h"

namespace millrace {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t kHeldQuota = 24 * kMiB;

// Something that was handed out: a mapping, and a descriptor that may outlive the object it is of.
class Holding {
 public:
  Holding(std::unique_ptr<CompleteObject> whole, std::string_view wanted, bool lets_go)
      : whole_(std::move(whole)), wanted_(wanted), descriptor_(::dup(whole_->descriptor())) {
    EXPECT_EQ(whole_->size(), wanted_.size());
    EXPECT_GE(descriptor_, 0);
    memory_ = ::mmap(nullptr, wanted_.size(), PROT_READ, MAP_SHARED, descriptor_, 0);
    EXPECT_NE(memory_, MAP_FAILED);
    if (lets_go) whole_.reset();
  }
  ~Holding() {
    ::munmap(memory_, wanted_.size());
    ::close(descriptor_);
  }

  void check(std::mt19937_64& random) const {
    const std::uint64_t at = random() % wanted_.size();
    const std::uint64_t length = std::min(1 + random() % (512 * kKiB), wanted_.size() - at);
    const std::string_view wanted = wanted_.substr(at, length);
    EXPECT_TRUE(std::string_view(static_cast<const char*>(memory_) + at, length) == wanted)
        << "a mapping shows other bytes";
    std::string bytes(length, '\0');
    EXPECT_EQ(::pread(descriptor_, bytes.data(), length, static_cast<off_t>(at)),
              static_cast<ssize_t>(length));
    EXPECT_TRUE(bytes == wanted) << "a descriptor shows other bytes";
  }

 private:
  std::unique_ptr<CompleteObject> whole_;
  const std::string_view wanted_;
  const int descriptor_;
  void* memory_ = nullptr;
};

class HolderRun {
 public:
  explicit HolderRun(std::uint64_t seed) : random_(seed) {
    for (int i = 0; i < 32; ++i) {
      const std::uint64_t size =
          i % 4 == 0 ? 1 + random_() % kMiB : kMiB + 1 + random_() % (2 * kMiB);
      objects_.push_back(world_.add(fmt::format("object-{}", i), size));
    }
  }

  void run(std::uint64_t wanted) {
    ASSERT_TRUE(world_.start().ok());
    std::vector<std::thread> threads;
    for (int i = 0; i < 64; ++i)
      threads.emplace_back([this, wanted, seed = random_()] { hold(wanted, seed); });
    for (int i = 0; i < 2; ++i)
      threads.emplace_back([this, wanted, seed = random_()] { push_out(wanted, seed); });
    for (std::thread& thread : threads)
      thread.join();
    world_.settle();
    EXPECT_LE(world_.cache().usage().used_bytes, kHeldQuota);
    for (const ObjectVersion& object : objects_)
      EXPECT_TRUE(world_.cache().drop(RequestContext::background(), object).ok());
    EXPECT_EQ(world_.cache().usage().used_bytes, 0u);
    expect_space_until_let_go();
  }

  std::uint64_t holds() const { return holds_; }
  std::uint64_t evicted() { return world_.metrics.counter(MetricId::kCacheEvictedBlocks).value(); }

 private:
  std::unique_ptr<CompleteObject> open(const ObjectVersion& object) {
    const RequestContext context(system_clock().now() + seconds(60), "torture");
    auto whole = world_.cache().open_complete(context, object);
    if (!whole && whole.error() == StatusCode::kNotFound) {
      // What others hold may leave no room.
      if (!world_.cache().warm(context, object, {0, object.size()}, Urgency::kDemanded).ok())
        return nullptr;
      whole = world_.cache().open_complete(context, object);
    }
    if (whole) return *std::move(whole);
    EXPECT_EQ(whole.error().code(), StatusCode::kNotFound) << whole.error().to_string();
    return nullptr;
  }

  void hold(std::uint64_t wanted, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::deque<Holding> held;
    while (holds_ < wanted && !::testing::Test::HasFailure()) {
      const ObjectVersion& object = objects_[random() % objects_.size()];
      if (std::unique_ptr<CompleteObject> whole = open(object)) {
        ++holds_;
        held.emplace_back(std::move(whole), world_.content(object), random() % 4 == 0);
      }
      for (const Holding& holding : held)
        holding.check(random);
      while (held.size() > random() % 3)
        held.pop_front();
    }
  }

  void push_out(std::uint64_t wanted, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    while (holds_ < wanted && !::testing::Test::HasFailure()) {
      const ObjectVersion& object = objects_[random() % objects_.size()];
      EXPECT_TRUE(world_.reads_right(object, {random() % object.size(), 256 * kKiB}));
      // Refused while somebody reads it into the cache.
      if (random() % 8 == 0) (void)world_.cache().drop(RequestContext::background(), object);
    }
  }

  void expect_space_until_let_go() {
    const ObjectVersion& object = objects_[1];
    std::unique_ptr<CompleteObject> first = open(object);
    std::unique_ptr<CompleteObject> second = open(object);
    ASSERT_TRUE(first && second);
    EXPECT_TRUE(world_.cache().drop(RequestContext::background(), object).ok());
    EXPECT_EQ(world_.cache().usage().used_bytes, object.size());
    first.reset();
    EXPECT_EQ(world_.cache().usage().used_bytes, object.size());
    second.reset();
    EXPECT_EQ(world_.cache().usage().used_bytes, 0u);
  }

  TortureDirectory directory_;
  PosixDisk disk_;
  CacheWorld world_{{.quota_bytes = kHeldQuota,
                     .readahead = {.window_bytes_max = 4 * kMiB},
                     .other_disk = &disk_,
                     .directory = directory_.path() + "/cache",
                     .faulty_disk = false}};
  std::mt19937_64 random_;
  std::vector<ObjectVersion> objects_;
  std::atomic<std::uint64_t> holds_ = 0;
};

TEST(CacheTorture, HoldersOfWhatIsEvictedReadOn) {
  LogCapture quiet(LogLevel::kOff);
  const std::uint64_t seed = torture_seed();
  SCOPED_TRACE(fmt::format("MILLRACE_SEED={}", seed));
  HolderRun run(seed);
  run.run(full_torture() ? 500'000 : 5'000);
  EXPECT_GT(run.evicted(), run.holds() / 50) << "too little eviction to mean something";
  report_torture("cache_holders", seed,
                 fmt::format(R"("holds":{},"evicted_blocks":{})", run.holds(), run.evicted()));
}

}  // namespace
}  // namespace millrace
