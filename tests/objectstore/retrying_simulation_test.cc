// The retrying store on a manual clock and executor, under random faults, delays and cancellations.
// A failure prints its seed; the same seed replays it.

#include <chrono>
#include <random>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/manual_executor.h"
#include "objectstore/faulty_object_store.h"
#include "objectstore/memory_object_store.h"
#include "objectstore/recording_object_store.h"
#include "objectstore/retrying_object_store.h"

namespace millrace {

namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kSeeds = 2000;
constexpr int kReads = 120;
constexpr std::size_t kInFlight = 8;

std::vector<FaultChance> chances_of(std::mt19937_64& random) {
  const double rate = static_cast<double>(random() % 5) / 10;  // Up to 40 % of failures.
  return {{rate / 3, {.kind = Fault::Kind::kFailBefore}},
          {rate / 3, {.kind = Fault::Kind::kFailAfter, .code = StatusCode::kCorruption}},
          {rate / 6, {.kind = Fault::Kind::kThrottle}},
          {rate / 6, {.kind = Fault::Kind::kThrottle, .retry_after = milliseconds(700)}},
          {0.05, {.kind = Fault::Kind::kDelay, .delay = milliseconds(900)}},
          {0.02, {.kind = Fault::Kind::kHang}}};
}

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed)
      : random_(seed),
        executor_(seed + 1),
        jitter_(seed),
        memory_options_{.latency = milliseconds(5)} {
    RetryPolicy policy;
    policy.tokens_max = static_cast<std::int64_t>(random_() % 200);
    policy.hedge.samples_min = 10;
    policy.hedge.quantile = 0.9;
    auto memory = std::make_shared<MemoryObjectStore>(clock_, executor_, memory_options_);
    const RequestContext context = RequestContext::background();
    EXPECT_TRUE(memory->put(context, ObjectKey("k"), Slice::copy_of(kBytes), {}));
    faulty_ = std::make_shared<FaultyObjectStore>(memory, random_faults(seed, chances_of(random_)),
                                                  clock_, executor_);
    control_ = std::make_shared<RetryControl>(policy, clock_, jitter_, metrics_);
    store_ = std::make_unique<RetryingObjectStore>(faulty_, control_, executor_);
    tokens_max_ = policy.tokens_max;
  }

  void run() {
    while (started_ < kReads || unanswered() > 0) {
      while (started_ < kReads && unanswered() < kInFlight)
        start_read();
      step();
    }
    // Losers and timers may still be there: they must not answer a second time.
    store_.reset();
    while (executor_.run_one() || clock_.advance_to_next_timer()) {
    }
    for (const auto& read : reads_)
      EXPECT_EQ(read->answers, 1);
  }

  std::uint64_t hedges() { return metrics_.counter(MetricId::kStoreHedgesStarted).value(); }
  std::uint64_t hedges_won() { return metrics_.counter(MetricId::kStoreHedgesWon).value(); }
  std::uint64_t succeeded() const { return succeeded_; }

 private:
  static constexpr std::string_view kBytes = "0123456789abcdef";
  struct Read {
    RequestContext context;
    int answers = 0;
    bool cancelled = false;
  };

  std::size_t unanswered() const { return static_cast<std::size_t>(started_) - answered_; }

  void start_read() {
    ++started_;
    const TimePoint deadline = clock_.now() + milliseconds(1 + random_() % 3000);
    auto read = std::make_shared<Read>(Read{RequestContext(deadline, "simulation")});
    reads_.push_back(read);
    const ByteRange range{random_() % 16, 1 + random_() % 16};
    store_->get_range(read->context, {.key = ObjectKey("k"), .range = range, .identity = {}},
                      Completion<GetResult>(executor_, [this, read, range](auto result) {
                        answered(*read, range, std::move(result));
                      }));
  }

  void answered(Read& read, ByteRange range, Result<GetResult> result) {
    ++read.answers;
    ++answered_;
    EXPECT_EQ(read.answers, 1);
    EXPECT_LE(clock_.now(), read.context.deadline()) << "answered after the deadline";
    if (result) {
      ++succeeded_;
      EXPECT_EQ(result->data.text(), kBytes.substr(range.offset, range.length));
    } else if (result.error() == StatusCode::kCancelled) {
      EXPECT_TRUE(read.cancelled);
    } else {
      EXPECT_TRUE(is_transient(result.error().code()) ||
                  result.error() == StatusCode::kDeadlineExceeded)
          << result.error().to_string();
    }
  }

  void step() {
    const std::uint64_t hedges_before = hedges();
    const bool throttled = control_->pause().active(clock_.now());
    if (random_() % 50 == 0) {
      auto& read = reads_[random_() % reads_.size()];
      read->cancelled = read->cancelled || read->answers == 0;
      read->context.cancellation().request();
    }
    if (!executor_.run_one()) {
      ASSERT_TRUE(clock_.advance_to_next_timer()) << "nothing left to wait for: a lost answer";
      return;  // Timers only hand tasks on; the clock has moved, so `throttled` is stale.
    }
    if (throttled) {
      EXPECT_EQ(hedges(), hedges_before) << "a hedge while the store is throttled";
    }
    EXPECT_GE(control_->budget().tokens(), 0);
    EXPECT_LE(control_->budget().tokens(), tokens_max_);
  }

  std::mt19937_64 random_;
  ManualClock clock_;
  ManualExecutor executor_;
  SeededRandom jitter_;
  Metrics metrics_;
  MemoryObjectStoreOptions memory_options_;
  std::shared_ptr<FaultyObjectStore> faulty_;
  std::shared_ptr<RetryControl> control_;
  std::unique_ptr<RetryingObjectStore> store_;
  std::int64_t tokens_max_ = 0;
  std::vector<std::shared_ptr<Read>> reads_;
  int started_ = 0;
  std::size_t answered_ = 0;
  std::uint64_t succeeded_ = 0;
};

}  // namespace

TEST(RetryingSimulation, ReadsAreAnsweredOnceInTimeAndRight) {
  std::uint64_t hedges = 0;
  std::uint64_t won = 0;
  std::uint64_t succeeded = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Simulation simulation(seed);
    simulation.run();
    hedges += simulation.hedges();
    won += simulation.hedges_won();
    succeeded += simulation.succeeded();
  }
  // The simulation must reach what it is about.
  EXPECT_GT(hedges, kSeeds);
  EXPECT_GT(won, kSeeds / 4);
  EXPECT_GT(succeeded, kSeeds * kReads / 2);
}

TEST(RetryingSimulation, ConditionalPutsTellTheTruth) {
  std::uint64_t settled = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    ManualClock clock;
    ManualExecutor executor(seed);
    SeededRandom jitter(seed);
    Metrics metrics;
    auto memory = std::make_shared<MemoryObjectStore>(clock, executor);
    auto faulty = std::make_shared<FaultyObjectStore>(
        memory,
        random_faults(seed, {{0.2, {.kind = Fault::Kind::kFailBefore}},
                             {0.25, {.kind = Fault::Kind::kFailAfter}},
                             {0.05, {.kind = Fault::Kind::kThrottle}}}),
        clock, executor);
    auto recording = std::make_shared<RecordingObjectStore>(faulty);
    RetryingObjectStore store(
        recording, std::make_shared<RetryControl>(RetryPolicy(), clock, jitter, metrics), executor);
    const RequestContext forever = RequestContext::background();
    for (int i = 0; i < 20; ++i) {
      const ObjectKey key("k" + std::to_string(random() % 6));
      const auto before = memory->head(forever, key);
      const std::string text = "write " + std::to_string(i);
      PutOptions options;
      const bool replace = before && random() % 2 == 0;
      options.condition =
          replace ? WriteCondition::if_identity(before->identity) : WriteCondition::if_absent();
      const bool allowed = replace || !before;
      const RequestContext context(clock.now() + std::chrono::seconds(30), "simulation");
      const auto info = store.put(context, key, Slice::copy_of(text), options);
      const auto after = memory->get(forever, {.key = key, .range = {}, .identity = {}});
      const bool stored = after && after->data.text() == text;
      if (info) {
        EXPECT_TRUE(allowed && stored);
        EXPECT_EQ(info->identity, after->info.identity);
        EXPECT_TRUE(info->metadata.empty());
      } else if (info.error() == StatusCode::kPreconditionFailed) {
        EXPECT_FALSE(allowed) << "our own write was taken for another's";
        EXPECT_FALSE(stored);
      } else {
        EXPECT_TRUE(info.error() == StatusCode::kUnavailable ||
                    (info.error() == StatusCode::kThrottled && !stored))
            << info.error().to_string();
      }
    }
    settled += recording->count(StoreOperation::kHead);
  }
  EXPECT_GT(settled, kSeeds) << "too few lost answers for the test to mean something";
}

}  // namespace millrace
