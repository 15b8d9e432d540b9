// What a loader reads ahead, over an engine that answers when it is told to.

#include "loader/prefetcher.h"

#include <atomic>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Samples without content. Reads wait until they may be answered.
class HeldEngine final : public BatchEngine {
 public:
  explicit HeldEngine(std::uint64_t samples) {
    facts_.push_back({.reader = "files",
                      .samples = samples,
                      .bytes = samples,
                      .stretches = {{.samples = samples, .bytes = samples}}});
  }
  std::string_view kind() const override { return "held"; }
  const std::vector<SourceFacts>& sources() const override { return facts_; }
  Result<BatchAnswer> read(const RequestContext& context, std::uint64_t epoch,
                           std::span<const PlacedSample> places) override {
    {
      MutexLock lock(mutex_);
      ++reads_;
      all_told_ = all_told_ && context.has_plan();
      changed_.notify_all();
      while (!open_)
        changed_.wait(mutex_);
      if (fails_) return failure(StatusCode::kUnavailable, "not today");
    }
    std::vector<ReadSample> samples;
    for (const PlacedSample& place : places)
      samples.push_back({.place = place, .key = "key"});
    BatchAnswer answer;
    MR_ASSIGN_OR_RETURN(answer.batch, build_batch(memory_, epoch, samples, {}));
    return answer;
  }
  std::unique_ptr<BatchPlan> start_plan(std::shared_ptr<const Caller>) override {
    return std::make_unique<CountedPlan>(*this);
  }

  void open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // Whether reads fail from now on.
  void set_fails(bool fails) {
    MutexLock lock(mutex_);
    fails_ = fails;
  }
  void wait_for_reads(std::size_t count) {
    MutexLock lock(mutex_);
    while (reads_ < count)
      changed_.wait(mutex_);
  }
  std::size_t reads() {
    MutexLock lock(mutex_);
    return reads_;
  }
  // Every read was said to be of one who plans.
  bool all_told() {
    MutexLock lock(mutex_);
    return all_told_;
  }
  void wait_for_plan() {
    MutexLock lock(mutex_);
    while (!has_plan_)
      changed_.wait(mutex_);
  }
  std::uint64_t planned() {
    MutexLock lock(mutex_);
    return planned_;
  }

 private:
  class CountedPlan final : public BatchPlan {
   public:
    explicit CountedPlan(HeldEngine& engine) : engine_(engine) {}
    void extend(const RequestContext&, std::span<const PlannedSample> samples) override {
      MutexLock lock(engine_.mutex_);
      engine_.has_plan_ = true;
      engine_.planned_ += samples.size();
      engine_.changed_.notify_all();
    }
    void advance(std::uint64_t) override {}

   private:
    HeldEngine& engine_;
  };

  std::vector<SourceFacts> facts_;
  BatchMemoryPool memory_;
  Mutex mutex_;
  CondVar changed_;
  bool open_ MR_GUARDED_BY(mutex_) = false;
  bool fails_ MR_GUARDED_BY(mutex_) = false;
  bool has_plan_ MR_GUARDED_BY(mutex_) = false;
  bool all_told_ MR_GUARDED_BY(mutex_) = true;
  std::size_t reads_ MR_GUARDED_BY(mutex_) = 0;
  std::uint64_t planned_ MR_GUARDED_BY(mutex_) = 0;
};

JobCursor cursor_of(const HeldEngine& engine) {
  JobChoice choice;
  choice.sources.push_back({.name = "x@v1"});
  auto job = LoaderJob::make(std::move(choice), engine.sources()).value();
  return JobCursor::make(std::move(job), {.batch = 8}, 0).value();
}

TimePoint soon() { return system_clock().now() + std::chrono::minutes(1); }

TEST(PrefetcherTest, TheFirstBatchHasTheStoreToItself) {
  HeldEngine engine(512);
  Prefetcher prefetcher(engine, cursor_of(engine), {});
  engine.wait_for_reads(1);
  engine.wait_for_plan();
  // The threads that read ahead are there, and wait: nothing is asked for beside the first batch.
  EXPECT_EQ(engine.reads(), 1u);
  EXPECT_EQ(engine.planned(), 0u);
  engine.open();
  ASSERT_TRUE(prefetcher.next(soon()));
  engine.wait_for_reads(4);
  EXPECT_GT(engine.planned(), 0u) << "said before the others are read";
  EXPECT_TRUE(engine.all_told()) << "else more than the first batch is fetched for it";
}

TEST(PrefetcherTest, WhatFailedIsReadAgainWhenItIsAskedForAgain) {
  HeldEngine engine(512);
  engine.set_fails(true);
  Prefetcher prefetcher(engine, cursor_of(engine), {});
  engine.open();
  const auto failed = prefetcher.next(soon());
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error() == StatusCode::kUnavailable) << failed.error().to_string();
  engine.wait_for_reads(4);
  // Whatever was wrong is mended between two calls: none of the four fails a second time.
  engine.set_fails(false);
  for (std::uint64_t step = 0; step < 64; ++step) {
    const auto next = prefetcher.next(soon());
    ASSERT_TRUE(next && next->kind == NextKind::kBatch) << step;
    EXPECT_EQ(next->taken.step.number, step);
  }
}

TEST(PrefetcherTest, EndsWhileTheFirstBatchIsRead) {
  HeldEngine engine(512);
  Prefetcher prefetcher(engine, cursor_of(engine), {});
  engine.wait_for_reads(1);
  engine.open();
}

}  // namespace
}  // namespace millrace
