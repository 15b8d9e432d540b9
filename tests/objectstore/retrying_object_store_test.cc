#include "objectstore/retrying_object_store.h"

#include <chrono>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/manual_executor.h"
#include "objectstore/faulty_object_store.h"
#include "objectstore/memory_object_store.h"
#include "objectstore/recording_object_store.h"
#include "objectstore/retry_loop.h"
#include "objectstore/retry_write_token.h"

namespace millrace {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Retrying : public ::testing::Test {
 protected:
  void make(FaultPlan plan, RetryPolicy policy = {}) {
    memory_ = std::make_shared<MemoryObjectStore>(
        clock_, executor_, MemoryObjectStoreOptions{.latency = milliseconds(2)});
    faulty_ = std::make_shared<FaultyObjectStore>(memory_, std::move(plan), clock_, executor_);
    recording_ = std::make_shared<RecordingObjectStore>(faulty_);
    control_ = std::make_shared<RetryControl>(policy, clock_, random_, metrics_);
    store_ = std::make_unique<RetryingObjectStore>(recording_, control_, executor_);
    ASSERT_TRUE(memory_->put(context(), key_, Slice::copy_of("value"), {}));
  }

  RequestContext context(Duration time = seconds(60)) const {
    return {clock_.now() + time, "test"};
  }
  GetRequest request() const {
    GetRequest request;
    request.key = key_;
    request.range = ByteRange{0, 5};
    return request;
  }
  // Runs one read to its end, letting time pass as needed.
  Result<GetResult> read(const RequestContext& context) {
    std::optional<Result<GetResult>> answer;
    store_->get_range(context, request(),
                      Completion<GetResult>(executor_, [&](auto r) { answer = std::move(r); }));
    while (!answer) {
      if (!executor_.run_one()) {
        EXPECT_TRUE(clock_.advance_to_next_timer());
      }
    }
    return std::move(*answer);
  }
  static FaultPlan always(Fault fault) {
    return [fault](const FaultableCall&) { return fault; };
  }

  const ObjectKey key_{"k"};
  ManualClock clock_;
  ManualExecutor executor_;
  SeededRandom random_{1};
  Metrics metrics_;
  std::shared_ptr<MemoryObjectStore> memory_;
  std::shared_ptr<FaultyObjectStore> faulty_;
  std::shared_ptr<RecordingObjectStore> recording_;
  std::shared_ptr<RetryControl> control_;
  std::unique_ptr<RetryingObjectStore> store_;
};

}  // namespace

TEST_F(Retrying, EveryOperationSurvivesItsFirstFailures) {
  for (const auto kind : {Fault::Kind::kFailBefore, Fault::Kind::kThrottle}) {
    make([kind](const FaultableCall& call) -> std::optional<Fault> {
      if (call.attempt < 2) return Fault{.kind = kind};
      return {};
    });
    EXPECT_EQ(read(context())->data.text(), "value");
    EXPECT_TRUE(store_->head(context(), key_));
    EXPECT_TRUE(store_->list(context(), {}));
    EXPECT_TRUE(store_->put(context(), key_, Slice::copy_of("v2"), {}));
    EXPECT_TRUE(store_->copy(context(), ObjectInfo{.key = key_}, ObjectKey("copy")));
    EXPECT_TRUE(store_->remove(context(), std::vector{key_}).ok());
    EXPECT_TRUE(store_->start_upload(context(), key_, {}));
    EXPECT_EQ(recording_->count(StoreOperation::kHead), 3U);
    EXPECT_EQ(recording_->count(), 21U) << "seven operations, three attempts each";
  }
}

TEST_F(Retrying, AttemptsAreNumberedAndLimited) {
  make(always({.kind = Fault::Kind::kFailBefore}));
  const auto info = store_->head(context(), key_);
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().code(), StatusCode::kUnavailable);
  EXPECT_NE(info.error().message().find("gave up after 5 attempts in "), std::string::npos)
      << info.error().message();
  const auto requests = recording_->requests();
  ASSERT_EQ(requests.size(), 5U);
  for (std::uint32_t i = 0; i < 5; ++i)
    EXPECT_EQ(requests[i].attempt, i);
}

TEST_F(Retrying, FinalFailuresAreNotRetried) {
  for (const StatusCode code : {StatusCode::kPermissionDenied, StatusCode::kInvalidArgument,
                                StatusCode::kNotFound, StatusCode::kInternal}) {
    make(always({.kind = Fault::Kind::kFailBefore, .code = code}));
    EXPECT_EQ(read(context()).error().code(), code);
    EXPECT_EQ(store_->head(context(), key_).error().code(), code);
    EXPECT_EQ(recording_->count(), 2U);
  }
}

TEST_F(Retrying, NoSleepPassesTheDeadline) {
  RetryPolicy policy;
  policy.attempts_max = 1000;
  policy.backoff_base = seconds(1);
  make(always({.kind = Fault::Kind::kFailBefore}), policy);
  const RequestContext limited = context(seconds(10));
  const auto info = store_->head(limited, key_);
  EXPECT_EQ(info.error().code(), StatusCode::kUnavailable) << "the last error, not the deadline";
  EXPECT_NE(info.error().message().find("after the deadline"), std::string::npos)
      << info.error().message();
  EXPECT_LT(clock_.now(), limited.deadline());
  EXPECT_GT(recording_->count(), 1U);
}

TEST_F(Retrying, AnEmptyBudgetMakesFirstErrorsFinal) {
  RetryPolicy policy;
  policy.tokens_max = 20;
  make(always({.kind = Fault::Kind::kFailBefore}), policy);
  for (int i = 0; i < 50; ++i)
    EXPECT_FALSE(store_->head(context(), key_));
  EXPECT_EQ(recording_->count(), 50U + 4U) << "20 tokens buy 4 retries";
  EXPECT_EQ(control_->budget().tokens(), 0);
  const auto info = store_->head(context(), key_);
  EXPECT_NE(info.error().message().find("retry budget is spent"), std::string::npos);
  faulty_->set_plan(no_faults());
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(store_->head(context(), key_));
  EXPECT_EQ(control_->budget().tokens(), 20) << "successes refill it";
}

TEST_F(Retrying, OneThrottledAnswerPausesTheWholeStore) {
  make(fault_nth_call(1, {.kind = Fault::Kind::kThrottle, .retry_after = seconds(3)}));
  const TimePoint begin = clock_.now();
  EXPECT_TRUE(store_->head(context(), key_));
  EXPECT_GE(clock_.now() - begin, seconds(3));

  faulty_->set_plan([n = std::make_shared<int>(0)](const FaultableCall&) -> std::optional<Fault> {
    if ((*n)++ == 0) return Fault{.kind = Fault::Kind::kThrottle, .retry_after = seconds(5)};
    return {};
  });
  const auto short_of_time = store_->head(context(seconds(1)), key_);
  EXPECT_EQ(short_of_time.error().code(), StatusCode::kThrottled);
  const TimePoint paused = clock_.now();
  recording_->clear();
  const auto other = store_->list(context(seconds(2)), {});
  EXPECT_EQ(other.error().code(), StatusCode::kThrottled) << "refused without being sent";
  EXPECT_EQ(recording_->count(), 0U);
  EXPECT_TRUE(store_->list(context(), {})) << "with time enough it waits";
  EXPECT_GE(clock_.now() - paused, seconds(4));
  EXPECT_EQ(metrics_.counter(MetricId::kStoreThrottles).value(), 2U);
}

TEST_F(Retrying, PausesGrowWithEachRefusalAndShrinkAgain) {
  RetryPause pause(milliseconds(100), seconds(1));
  TimePoint now = clock_.now();
  for (const int expected_ms : {100, 200, 400, 800, 1000, 1000}) {
    pause.on_throttled(now, {});
    EXPECT_EQ(pause.not_before() - now, milliseconds(expected_ms));
    pause.on_throttled(now + milliseconds(50), {});
    EXPECT_EQ(pause.not_before() - now, milliseconds(expected_ms)) << "one burst is one refusal";
    now = pause.not_before();
  }
  for (int i = 0; i < 10; ++i)
    pause.on_success(now);
  pause.on_throttled(now, {});
  EXPECT_EQ(pause.not_before() - now, milliseconds(100));
}

TEST_F(Retrying, ALostAnswerToACreateIsSettledByItsToken) {
  make(fault_nth_call(1, {.kind = Fault::Kind::kFailAfter}));
  PutOptions options;
  options.condition = WriteCondition::if_absent();
  options.metadata = {{"mine", "1"}};
  const auto info = store_->put(context(), ObjectKey("new"), Slice::copy_of("x"), options);
  ASSERT_TRUE(info) << info.error().to_string();
  EXPECT_EQ(info->metadata, options.metadata);
  const auto below = memory_->head(context(), ObjectKey("new"));
  EXPECT_TRUE(below->metadata.contains(std::string(kWriteTokenName)));
  EXPECT_EQ(store_->head(context(), ObjectKey("new"))->metadata, options.metadata);
}

TEST_F(Retrying, AnotherWritersObjectIsNotTakenForOurs) {
  make([this](const FaultableCall& call) -> std::optional<Fault> {
    if (call.attempt > 0 || call.operation != StoreOperation::kPut) return {};
    // Fails before it is carried out, while somebody else creates the object.
    EXPECT_TRUE(memory_->put(context(), ObjectKey("new"), Slice::copy_of("theirs"), {}));
    return Fault{.kind = Fault::Kind::kFailBefore};
  });
  PutOptions options;
  options.condition = WriteCondition::if_absent();
  const auto info = store_->put(context(), ObjectKey("new"), Slice::copy_of("ours"), options);
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().code(), StatusCode::kPreconditionFailed);
}

TEST_F(Retrying, AnOutcomeThatCannotBeSettledIsUnavailable) {
  make([](const FaultableCall& call) -> std::optional<Fault> {
    if (call.operation == StoreOperation::kHead) {
      return Fault{.kind = Fault::Kind::kFailBefore, .code = StatusCode::kPermissionDenied};
    }
    if (call.attempt == 0) return Fault{.kind = Fault::Kind::kFailAfter};
    return {};
  });
  PutOptions options;
  options.condition = WriteCondition::if_absent();
  const auto info = store_->put(context(), ObjectKey("new"), Slice::copy_of("x"), options);
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().code(), StatusCode::kUnavailable);
  EXPECT_NE(info.error().message().find("unknown whether 'new' was written"), std::string::npos);
}

TEST_F(Retrying, TheTokensNameIsReserved) {
  make(no_faults());
  PutOptions options;
  options.metadata = {{std::string(kWriteTokenName), "x"}};
  EXPECT_EQ(store_->put(context(), key_, {}, options).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->start_upload(context(), key_, options).error().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(Retrying, ASlowReadIsHedgedOnceEnoughIsKnown) {
  make(no_faults());
  for (int i = 0; i < 99; ++i)
    ASSERT_TRUE(read(context()));
  faulty_->set_plan([](const FaultableCall& call) -> std::optional<Fault> {
    if (call.attempt == 0) return Fault{.kind = Fault::Kind::kHang};
    return {};
  });
  EXPECT_FALSE(read(context(seconds(1)))) << "99 samples are too few";
  faulty_->set_plan(no_faults());
  ASSERT_TRUE(read(context()));
  recording_->clear();
  faulty_->set_plan([](const FaultableCall& call) -> std::optional<Fault> {
    if (call.attempt == 0) return Fault{.kind = Fault::Kind::kHang};
    return {};
  });
  const TimePoint begin = clock_.now();
  const auto got = read(context());
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(clock_.now() - begin, milliseconds(22)) << "the floor of 20 ms, and 2 ms of latency";
  EXPECT_EQ(metrics_.counter(MetricId::kStoreHedgesStarted).value(), 1U);
  EXPECT_EQ(metrics_.counter(MetricId::kStoreHedgesWon).value(), 1U);
  executor_.run_all();
  const auto requests = recording_->requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].outcome, StatusCode::kCancelled) << "the loser is called off";
  EXPECT_EQ(requests[1].attempt, 1U);
  EXPECT_EQ(clock_.armed_timers(), 0U);
}

TEST_F(Retrying, NoHedgeWhenSwitchedOff) {
  RetryPolicy policy;
  policy.hedge.enabled = false;
  make(no_faults(), policy);
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(read(context()));
  faulty_->set_plan(always({.kind = Fault::Kind::kHang}));
  EXPECT_EQ(read(context(seconds(1))).error().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(metrics_.counter(MetricId::kStoreHedgesStarted).value(), 0U);
}

TEST_F(Retrying, SizeClassesAreKeptApart) {
  HedgingLatency latency{HedgePolicy()};
  GetRequest small = request();
  GetRequest large = request();
  large.range = ByteRange{0, 32 * kMiB};
  for (int i = 1; i <= 1000; ++i)
    latency.record(large, milliseconds(i));
  EXPECT_FALSE(latency.hedge_delay(small));
  ASSERT_TRUE(latency.hedge_delay(large));
  EXPECT_EQ(*latency.hedge_delay(large), milliseconds(991));
}

TEST_F(Retrying, CancellingEndsAWaitBetweenAttempts) {
  RetryPolicy policy;
  policy.backoff_base = seconds(5);
  make(always({.kind = Fault::Kind::kFailBefore}), policy);
  const RequestContext cancelled = context();
  std::optional<Result<GetResult>> answer;
  store_->get_range(cancelled, request(),
                    Completion<GetResult>(executor_, [&](auto r) { answer = std::move(r); }));
  cancelled.cancellation().request();
  executor_.run_all();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error().code(), StatusCode::kCancelled);
  EXPECT_EQ(recording_->count(), 1U);
}

}  // namespace millrace
