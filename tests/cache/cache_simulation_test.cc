// The whole read path on one thread, with a manual clock and executors that run tasks in an order
// drawn from a seed: random reads, cancellations, deadlines, evictions, restarts and power losses,
// under a store and a disk that fail. A failure prints its seed; MILLRACE_SEED replays it.

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/cache/cache_simulation_world.h"

namespace millrace {
namespace {

using std::chrono::milliseconds;

#if defined(MILLRACE_SANITIZED)
constexpr std::uint64_t kSimulationSeeds = 60;
#else
constexpr std::uint64_t kSimulationSeeds = 200;
#endif
constexpr std::size_t kReadsAtOnceMax = 12;

// From the smallest to some that are larger than a block, on both sides of every limit.
constexpr std::uint64_t kSimulatedSizes[] = {
    1,    17,      4096,     kUnitBytes, kUnitBytes + 1,    300'000,     kMiB - 1,
    kMiB, 900'000, kMiB + 1, 2 * kMiB,   3 * kMiB + 12'345, 9 * kMiB + 7};

std::uint64_t pick(std::mt19937_64& random, std::initializer_list<std::uint64_t> values) {
  return values.begin()[random() % values.size()];
}

SimulationOptions random_options(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  SimulationOptions options;
  options.seed = seed;
  options.store_latency = milliseconds(random() % 20);
  options.memory_bytes_max = pick(random, {40 * kMiB, 64 * kMiB, 256 * kMiB});
  options.quota_bytes = pick(random, {4 * kMiB, 6 * kMiB, 12 * kMiB, 64 * kMiB});
  options.segment_bytes_max = pick(random, {256 * kKiB, 2 * kMiB, 16 * kMiB});
  options.fetch_bytes_max = pick(random, {kUnitBytes, 256 * kKiB, kMiB, kBlockBytes});
  options.open_objects_max = pick(random, {0, 0, 256});
  options.fetches.bytes_in_flight_max = pick(random, {kMiB, 8 * kMiB, 64 * kMiB});
  options.fetches.requests_in_flight_max = static_cast<std::uint32_t>(pick(random, {1, 4, 64}));
  options.readahead.window_bytes_max = pick(random, {0, kMiB, 8 * kMiB});
  return options;
}

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed) : random_(seed), world_(random_options(seed)) {
    int number = 0;
    for (const std::uint64_t size : kSimulatedSizes) {
      const bool with_checksums = random_() % 2 == 0;
      const std::string name = fmt::format("object-{}", number++);
      objects_.push_back({world_.add(name, size, with_checksums)});
      if (with_checksums) checked_.insert(name);
    }
  }

  void run() {
    const std::uint64_t lives = 2 + random_() % 3;
    for (std::uint64_t life = 0; life < lives && !::testing::Test::HasFailure(); ++life) {
      open();
      live();
      end();
    }
    world_.store->set_plan(no_faults());
    world_.clock.advance(std::chrono::minutes(1));
    ASSERT_TRUE(world_.start().ok());
    for (const Object& object : objects_)
      EXPECT_TRUE(world_.reads_right(object.simulated));
    world_.stop();
    for (const auto& read : reads_)
      EXPECT_EQ(read->answers, 1);
  }

  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
  std::uint64_t evicted() { return world_.metrics.counter(MetricId::kCacheEvictedBlocks).value(); }
  std::uint64_t store_faults() const { return store_faults_; }
  std::uint64_t disk_faults() const { return world_.disk.faults(); }

 private:
  struct Object {
    SimulatedObject simulated;
    std::uint64_t next = 0;  // Where a sequential reader goes on.
  };
  struct Read {
    RequestContext context;
    int answers = 0;
    bool cancelled = false;
  };

  // ---- The lives of the cache

  void open() {
    set_store_faults();
    if (random_() % 4 == 0) {
      world_.disk.set_fault(fail_randomly(0.01, random_(), random_() % 2 == 0 ? EIO : ENOSPC));
    }
    Status status = world_.start();
    if (!status.ok()) {
      EXPECT_TRUE(status == StatusCode::kIoError || status == StatusCode::kResourceExhausted)
          << status.to_string();
      world_.disk.set_fault({});
      status = world_.start();
    }
    ASSERT_TRUE(status.ok()) << status.to_string();
    faults_before_life_ = world_.disk.faults();
  }

  void live() {
    const std::uint64_t bursts = 1 + random_() % 4;
    for (std::uint64_t burst = 0; burst < bursts; ++burst) {
      set_disk_faults();
      std::uint64_t left = 5 + random_() % 25;
      while (left > 0 && !::testing::Test::HasFailure()) {
        if (unanswered_ < kReadsAtOnceMax && random_() % 3 == 0) {
          start_read();
          --left;
        }
        disturb();
        if (!world_.step()) {
          ASSERT_EQ(unanswered_, 0u) << "nothing is under way: a lost answer";
        }
        check_quota();
      }
      // After a failed write the cache leaves the disk alone for a while.
      if (random_() % 2 == 0) {
        world_.drain();
        world_.clock.advance(std::chrono::seconds(11));
      }
    }
  }

  void end() {
    switch (random_() % 3) {
      case 0:
        world_.disk.set_fault({});
        world_.stop();
        // The books are true: segments only round up to pages.
        if (world_.disk.faults() == 0) {
          EXPECT_LE(world_.data_bytes_on_disk(), world_.options.quota_bytes);
        }
        break;
      case 1:
        world_.crash(false);
        break;
      default:
        world_.crash(true);
        break;
    }
    EXPECT_EQ(unanswered_, 0u);
  }

  // ---- What goes wrong

  void set_store_faults() {
    const double rate = static_cast<double>(random_() % 4) / 20;  // Up to 15 %.
    FaultPlan plan =
        random_faults(random_(), {{rate / 3, {.kind = Fault::Kind::kFailBefore}},
                                  {rate / 3, {.kind = Fault::Kind::kFailAfter}},
                                  {rate / 6, {.kind = Fault::Kind::kThrottle}},
                                  {rate / 3, {.kind = Fault::Kind::kCorrupt}},
                                  {0.1, {.kind = Fault::Kind::kDelay, .delay = milliseconds(900)}},
                                  {rate / 6, {.kind = Fault::Kind::kHang}}});
    world_.store->set_plan([this, plan](const FaultableCall& call) {
      std::optional<Fault> fault = plan(call);
      // Nobody could notice it.
      const bool unnoticed =
          fault && fault->kind == Fault::Kind::kCorrupt && !checked_.contains(call.key);
      if (unnoticed) fault.reset();
      if (fault && fault->kind != Fault::Kind::kDelay) ++store_faults_;
      return fault;
    });
  }

  void set_disk_faults() {
    switch (random_() % 6) {
      case 0:
        set_disk_fault(fail_randomly(0.02, random_(), EIO));
        break;
      case 1:
        set_disk_fault(fail_randomly(0.2, random_(), ENOSPC));
        break;
      case 2:
        set_disk_fault(read_only_disk());
        break;
      default:
        set_disk_fault([](const DiskCall&) { return 0; });
        break;
    }
  }

  // Reads of data take their time: other tasks run between the decision to read and the reading.
  void set_disk_fault(DiskFault fault) {
    world_.disk.set_fault([this, fault = std::move(fault)](const DiskCall& call) {
      if (call.operation == DiskOperation::kRead && call.path.ends_with(".data") && !inside_read_ &&
          random_() % 4 == 0) {
        inside_read_ = true;
        for (std::uint64_t tasks = random_() % 4; tasks > 0; --tasks) {
          world_.disk_executor.run_one();
          world_.fetch_executor.run_one();
        }
        inside_read_ = false;
      }
      return fault(call);
    });
  }

  void disturb() {
    if (random_() % 40 == 0 && !reads_.empty()) {
      Read& read =
          *reads_[reads_.size() - 1 - random_() % std::min<std::size_t>(20, reads_.size())];
      read.cancelled = read.cancelled || read.answers == 0;
      read.context.cancellation().request();
    }
    if (random_() % 60 == 0) {
      const Object& object = objects_[random_() % objects_.size()];
      // Refused while some of it is in flight, or when the disk fails.
      (void)world_.cache().drop(RequestContext::background(), object.simulated.version);
    }
  }

  // ---- Reads

  ByteRange random_range(Object& object) {
    const std::uint64_t size = object.simulated.version.size();
    const std::uint64_t length = 1 + random_() % (std::uint64_t{1} << (random_() % 24));
    if (random_() % 2 == 0) {
      if (object.next >= size) object.next = 0;
      return {std::exchange(object.next, object.next + length), length};
    }
    return {random_() % size, length};
  }

  void start_read() {
    Object& object = objects_[random_() % objects_.size()];
    const ByteRange range = random_range(object);
    const bool patient = random_() % 4 == 0;
    auto read = std::make_shared<Read>(
        Read{patient ? RequestContext::background()
                     : RequestContext(world_.clock.now() + milliseconds(1 + random_() % 3000),
                                      "simulation")});
    reads_.push_back(read);
    ++unanswered_;
    Executor& executor =
        random_() % 2 == 0 ? inline_executor() : static_cast<Executor&>(world_.caller_executor);
    const std::string_view wanted = object.simulated.data.text().substr(range.offset, range.length);
    world_.cache().read(read->context, object.simulated.version, range,
                        Completion<Slice>(executor, [this, read, wanted](auto result) {
                          answered(*read, wanted, std::move(result));
                        }));
  }

  void answered(Read& read, std::string_view wanted, Result<Slice> result) {
    --unanswered_;
    EXPECT_EQ(++read.answers, 1);
    EXPECT_LE(world_.clock.now(), read.context.deadline()) << "answered after the deadline";
    if (result) {
      ++succeeded;
      EXPECT_TRUE(result->text() == wanted) << "wrong bytes";
      return;
    }
    ++failed;
    const bool late = result.error() == StatusCode::kDeadlineExceeded &&
                      world_.clock.now() == read.context.deadline();
    const bool cancelled = result.error() == StatusCode::kCancelled && read.cancelled;
    const bool injected = store_faults_ > 0 && (result.error() == StatusCode::kUnavailable ||
                                                result.error() == StatusCode::kThrottled ||
                                                result.error() == StatusCode::kCorruption ||
                                                result.error() == StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(late || cancelled || injected) << result.error().to_string();
  }

  void check_quota() {
    // What the disk refused to free is found again, and goes at the next chance.
    if (world_.disk.faults() > faults_before_life_) return;
    const CacheUsage usage = world_.cache().usage();
    if (usage.scanned) {
      EXPECT_LE(usage.used_bytes, world_.options.quota_bytes);
    }
  }

  std::mt19937_64 random_;
  SimulationWorld world_;
  std::vector<Object> objects_;
  std::set<std::string> checked_;  // Names of objects whose checksums are known.
  std::vector<std::shared_ptr<Read>> reads_;
  std::size_t unanswered_ = 0;
  std::uint64_t store_faults_ = 0;
  std::uint64_t faults_before_life_ = 0;
  bool inside_read_ = false;
};

// A block goes while the object that it belongs to is being loaded, in every order of the steps.
TEST(CacheSimulation, EvictionMeetsLoading) {
  constexpr std::uint64_t kQuota = 9 * kMiB;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    SimulationWorld world(
        {.seed = seed, .quota_bytes = kQuota, .fetch_bytes_max = kMiB, .readahead = {0}});
    const SimulatedObject old = world.add("old", 8 * kMiB, false);
    const SimulatedObject fresh = world.add("fresh", 5 * kMiB, false);
    ASSERT_TRUE(world.start().ok());
    ASSERT_TRUE(world.reads_right(old));
    world.stop();
    ASSERT_TRUE(world.start().ok());
    world.drain();
    int answers = 0;
    const auto read = [&](const SimulatedObject& object, ByteRange range) {
      world.cache().read(
          RequestContext::background(), object.version, range,
          Completion<Slice>(inline_executor(), [&, range](const Result<Slice>& result) {
            ++answers;
            EXPECT_TRUE(result &&
                        result->text() == object.data.part(range.offset, range.length).text());
          }));
    };
    read(fresh, {0, fresh.version.size()});
    for (std::uint64_t steps = seed % 16; steps > 0; --steps)
      world.step();
    read(old, {0, 1});
    world.drain();
    EXPECT_EQ(answers, 2);
    EXPECT_LE(world.cache().usage().used_bytes, kQuota);
    EXPECT_LE(world.data_bytes_on_disk(), kQuota);
    EXPECT_GE(world.cache().usage().used_bytes, world.data_bytes_on_disk());
    world.stop();
  }
}

// Reads another object, for which the first one has to make room, in the middle of the n-th call.
void interrupt_nth_call(SimulationWorld& world, DiskOperation operation, std::uint64_t n,
                        const SimulatedObject& other, bool& interrupted) {
  world.disk.set_fault(
      [&, operation, seen = std::make_shared<std::uint64_t>(0), n](const DiskCall& call) {
        const bool of_object = call.path.ends_with(".data") || call.path.ends_with(".map");
        if (!interrupted && of_object && call.operation == operation && (*seen)++ == n) {
          interrupted = true;
          EXPECT_TRUE(world.reads_right(other));
          world.drain();
        }
        return 0;
      });
}

void expect_right(SimulationWorld& world, const SimulatedObject& object, ByteRange range) {
  const Result<Slice> got = world.read(object, range);
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_TRUE(got->text() == object.data.part(range.offset, range.length).text())
      << "wrong bytes at " << range.offset;
}

TEST(CacheSimulation, EvictionInTheMiddleOfAnyDiskCallShowsNobodyAHole) {
  for (const bool after_restart : {false, true}) {
    for (const DiskOperation operation : {DiskOperation::kRead, DiskOperation::kWrite}) {
      bool interrupted = true;
      for (std::uint64_t n = 0; interrupted; ++n) {
        SCOPED_TRACE(fmt::format("{} call {}{}",
                                 operation == DiskOperation::kRead ? "read" : "write", n,
                                 after_restart ? " after a restart" : ""));
        SimulationWorld world({.quota_bytes = 5 * kMiB, .fetch_bytes_max = kMiB, .readahead = {0}});
        const SimulatedObject object = world.add("object", 4 * kMiB, false);
        const SimulatedObject other = world.add("other", 4 * kMiB, false);
        ASSERT_TRUE(world.start().ok());
        ASSERT_TRUE(world.read(object, {0, 3 * kMiB}));
        world.drain();
        if (after_restart) {
          world.stop();
          ASSERT_TRUE(world.start().ok());
          world.drain();
        }
        interrupted = false;
        interrupt_nth_call(world, operation, n, other, interrupted);
        expect_right(world, object, {kMiB, 1000});
        EXPECT_TRUE(world.reads_right(object));
        world.drain();
        world.disk.set_fault({});
        // What was written last first: the other parts may have to be fetched, and push it out.
        expect_right(world, object, {3 * kMiB, kMiB});
        EXPECT_TRUE(world.reads_right(object));
        EXPECT_LE(world.cache().usage().used_bytes, 5 * kMiB);
        EXPECT_LE(world.data_bytes_on_disk(), 5 * kMiB);
        world.stop();
        ASSERT_TRUE(world.start().ok());
        EXPECT_TRUE(world.reads_right(object));
        EXPECT_TRUE(world.reads_right(other));
        EXPECT_EQ(world.bad_units(), 0u);
        world.stop();
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(CacheSimulation, EveryReadIsAnsweredOnceInTimeAndRight) {
  LogCapture quiet(LogLevel::kOff);
  std::uint64_t first = 1;
  std::uint64_t count = kSimulationSeeds;
  if (const char* text = std::getenv("MILLRACE_SEED")) {
    first = std::strtoull(text, nullptr, 10);
    count = 1;
  }
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
  std::uint64_t evicted = 0;
  std::uint64_t store_faults = 0;
  std::uint64_t disk_faults = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(fmt::format("MILLRACE_SEED={}", seed));
    Simulation simulation(seed);
    simulation.run();
    succeeded += simulation.succeeded;
    failed += simulation.failed;
    evicted += simulation.evicted();
    store_faults += simulation.store_faults();
    disk_faults += simulation.disk_faults();
    if (::testing::Test::HasFailure()) return;
  }
  if (count == 1) return;
  EXPECT_GT(succeeded, count * 10) << "too few right answers for the test to mean something";
  EXPECT_GT(failed, count);
  EXPECT_GT(evicted, count);
  EXPECT_GT(store_faults, count);
  EXPECT_GT(disk_faults, count);
}

}  // namespace
}  // namespace millrace
