#include "tests/cache/cache_simulation_run.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/cache/cache_simulation_world.h"

namespace millrace {
namespace {

using std::chrono::milliseconds;

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
  options.directories = random() % 4 == 0 ? 2 : 1;
  if (random() % 4 == 0) options.cipher = simulated_cipher('7');
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

  SimulationFigures figures() {
    return {.succeeded = succeeded_,
            .failed = failed_,
            .evicted_blocks = world_.metrics.counter(MetricId::kCacheEvictedBlocks).value(),
            .store_faults = store_faults_,
            .disk_faults = world_.disk.faults()};
  }

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
          EXPECT_LE(world_.data_bytes_on_disk(), quota());
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
    // Up to 8 MiB, and small ones mostly: those cost little.
    const std::uint64_t bits = std::min(random_() % 24, random_() % 24);
    const std::uint64_t length = 1 + random_() % (std::uint64_t{1} << bits);
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
      ++succeeded_;
      EXPECT_TRUE(result->text() == wanted) << "wrong bytes";
      return;
    }
    ++failed_;
    const bool late = result.error() == StatusCode::kDeadlineExceeded &&
                      world_.clock.now() == read.context.deadline();
    const bool cancelled = result.error() == StatusCode::kCancelled && read.cancelled;
    const bool injected = store_faults_ > 0 && (result.error() == StatusCode::kUnavailable ||
                                                result.error() == StatusCode::kThrottled ||
                                                result.error() == StatusCode::kCorruption ||
                                                result.error() == StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(late || cancelled || injected) << result.error().to_string();
  }

  std::uint64_t quota() const {
    return world_.options.quota_bytes * static_cast<std::uint64_t>(world_.options.directories);
  }

  void check_quota() {
    // What the disk refused to free is found again, and goes at the next chance.
    if (world_.disk.faults() > faults_before_life_) return;
    const CacheUsage usage = world_.cache().usage();
    if (usage.scanned) {
      EXPECT_LE(usage.used_bytes, quota());
    }
  }

  std::mt19937_64 random_;
  SimulationWorld world_;
  std::vector<Object> objects_;
  std::set<std::string> checked_;  // Names of objects whose checksums are known.
  std::vector<std::shared_ptr<Read>> reads_;
  std::size_t unanswered_ = 0;
  std::uint64_t succeeded_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t store_faults_ = 0;
  std::uint64_t faults_before_life_ = 0;
  bool inside_read_ = false;
};

}  // namespace

SimulationFigures simulate_cache(std::uint64_t seed) {
  LogCapture quiet(LogLevel::kOff);
  SCOPED_TRACE(fmt::format("MILLRACE_SEED={}", seed));
  Simulation simulation(seed);
  simulation.run();
  return simulation.figures();
}

SimulationFigures simulate_cache(std::uint64_t first_seed, std::uint64_t count) {
  SimulationFigures total;
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    const SimulationFigures figures = simulate_cache(seed);
    total.succeeded += figures.succeeded;
    total.failed += figures.failed;
    total.evicted_blocks += figures.evicted_blocks;
    total.store_faults += figures.store_faults;
    total.disk_faults += figures.disk_faults;
    if (::testing::Test::HasFailure()) break;
  }
  return total;
}

}  // namespace millrace
