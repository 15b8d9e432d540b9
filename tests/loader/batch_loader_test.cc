// What a loader says of a batch that does not come.

#include "loader/batch_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

class NoPlan final : public BatchPlan {
 public:
  void extend(const RequestContext&, std::span<const PlannedSample>) override {}
  void advance(std::uint64_t) override {}
};

// Gives nothing before it is let go.
class SlowEngine final : public BatchEngine {
 public:
  SlowEngine() {
    facts_.push_back({.reader = "files",
                      .samples = 64,
                      .bytes = 64,
                      .stretches = {{.samples = 64, .bytes = 64}}});
  }
  std::string_view kind() const override { return "slow engine"; }
  const std::vector<SourceFacts>& sources() const override { return facts_; }
  Result<BatchAnswer> read(const RequestContext&, std::uint64_t epoch,
                           std::span<const PlacedSample> places) override {
    {
      MutexLock lock(mutex_);
      while (!released_)
        changed_.wait(mutex_);
    }
    std::vector<ReadSample> samples;
    for (const PlacedSample& place : places)
      samples.push_back({.place = place, .key = "key"});
    BatchAnswer answer;
    MR_ASSIGN_OR_RETURN(answer.batch, build_batch(memory_, epoch, samples, {}));
    return answer;
  }
  std::unique_ptr<BatchPlan> start_plan(std::shared_ptr<const Caller>) override {
    return std::make_unique<NoPlan>();
  }
  void release() {
    MutexLock lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::vector<SourceFacts> facts_;
  BatchMemoryPool memory_;
  Mutex mutex_;
  CondVar changed_;
  bool released_ MR_GUARDED_BY(mutex_) = false;
};

class WatchdogTest : public ::testing::Test {
 protected:
  ~WatchdogTest() override { engine->release(); }

  void open(Duration watchdog) {
    JobChoice choice;
    choice.sources.push_back({.name = "x@v1"});
    auto job = LoaderJob::make(std::move(choice), engine->sources()).value();
    loader =
        BatchLoader::open(engine, std::move(job), {.choice = {.batch = 8}, .watchdog = watchdog}, 0)
            .value();
  }
  // A wait that is much shorter than the watchdog.
  NextKind wait_a_little() {
    return loader->next(system_clock().now() + std::chrono::milliseconds(2)).value().kind;
  }

  const LogCapture log;
  const std::shared_ptr<SlowEngine> engine = std::make_shared<SlowEngine>();
  std::unique_ptr<BatchLoader> loader;
};

TEST_F(WatchdogTest, AWaitInSlicesIsOneWait) {
  open(std::chrono::milliseconds(50));
  const TimePoint end = system_clock().now() + std::chrono::seconds(60);
  while (loader->stats().stuck.empty() && system_clock().now() < end)
    ASSERT_EQ(wait_a_little(), NextKind::kNotYet);
  EXPECT_THAT(loader->stats().stuck, HasSubstr("batch 0 of epoch 0"));
  EXPECT_THAT(loader->stats().stuck, HasSubstr("by the slow engine"));
  EXPECT_THAT(log.text(), HasSubstr("a loader waits long for a batch"));
  engine->release();
  ASSERT_TRUE(loader->next(end));
  EXPECT_EQ(loader->stats().stuck, "");
}

TEST_F(WatchdogTest, MayBeOff) {
  open(Duration());
  for (int n = 0; n < 5; ++n)
    ASSERT_EQ(wait_a_little(), NextKind::kNotYet);
  EXPECT_EQ(loader->stats().stuck, "");
}

}  // namespace
}  // namespace millrace
