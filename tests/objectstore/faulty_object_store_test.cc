#include "objectstore/faulty_object_store.h"

#include <chrono>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/manual_executor.h"
#include "objectstore/memory_object_store.h"

namespace millrace {

namespace {

using std::chrono::seconds;

class Faulty : public ::testing::Test {
 protected:
  RequestContext context() const { return {clock_.now() + seconds(10), "test"}; }
  Status put(std::string_view text) {
    const auto info = store_.put(context(), key_, Slice::copy_of(text), {});
    return info ? Status() : info.error();
  }
  std::string stored() {
    GetRequest request;
    request.key = key_;
    const auto got = memory_->get(RequestContext::background(), request);
    return got ? std::string(got->data.text()) : "";
  }
  Result<GetResult> read() {
    GetRequest request;
    request.key = key_;
    std::optional<Result<GetResult>> answer;
    store_.get_range(context(), request,
                     Completion<GetResult>(executor_, [&](auto r) { answer = std::move(r); }));
    while (!answer) {
      if (!executor_.run_one()) {
        EXPECT_TRUE(clock_.advance_to_next_timer());
      }
    }
    return std::move(*answer);
  }
  void inject(Fault fault) {
    store_.set_plan([fault](const FaultableCall&) { return fault; });
  }

  const ObjectKey key_{"k"};
  ManualClock clock_;
  ManualExecutor executor_;
  std::shared_ptr<MemoryObjectStore> memory_ =
      std::make_shared<MemoryObjectStore>(clock_, executor_);
  FaultyObjectStore store_{memory_, no_faults(), clock_, executor_};
};

}  // namespace

TEST_F(Faulty, FailBeforeDoesNothingAndFailAfterDoesIt) {
  inject({.kind = Fault::Kind::kFailBefore});
  EXPECT_EQ(put("one").code(), StatusCode::kUnavailable);
  EXPECT_EQ(stored(), "");
  inject({.kind = Fault::Kind::kFailAfter});
  EXPECT_EQ(put("one").code(), StatusCode::kUnavailable);
  EXPECT_EQ(stored(), "one");
  EXPECT_EQ(read().error().code(), StatusCode::kUnavailable);
}

TEST_F(Faulty, ThrottleCarriesRetryAfter) {
  inject({.kind = Fault::Kind::kThrottle, .retry_after = seconds(7)});
  const Status status = put("x");
  EXPECT_EQ(status.code(), StatusCode::kThrottled);
  EXPECT_EQ(status.retry_after(), seconds(7));
  EXPECT_EQ(status.with_context("where").retry_after(), seconds(7));
}

TEST_F(Faulty, DelaysPassByTheClockAndEndAtTheDeadline) {
  ASSERT_TRUE(put("x").ok());
  inject({.kind = Fault::Kind::kDelay, .delay = seconds(3)});
  TimePoint begin = clock_.now();
  EXPECT_TRUE(read());
  EXPECT_EQ(clock_.now() - begin, seconds(3));
  begin = clock_.now();
  EXPECT_TRUE(put("y").ok());
  EXPECT_EQ(clock_.now() - begin, seconds(3));
  inject({.kind = Fault::Kind::kDelay, .delay = seconds(30)});
  begin = clock_.now();
  EXPECT_EQ(read().error().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(put("z").code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(clock_.now() - begin, seconds(20));
  EXPECT_EQ(stored(), "y");
}

TEST_F(Faulty, CorruptFlipsBytesOfTheAnswerOnly) {
  ASSERT_TRUE(put("some bytes").ok());
  inject({.kind = Fault::Kind::kCorrupt});
  const auto got = read();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->data.size(), 10U);
  EXPECT_NE(got->data.text(), "some bytes");
  EXPECT_EQ(stored(), "some bytes");
}

TEST_F(Faulty, AHangEndsWithTheDeadlineOrTheCancellation) {
  inject({.kind = Fault::Kind::kHang});
  EXPECT_EQ(put("x").code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(read().error().code(), StatusCode::kDeadlineExceeded);
  const RequestContext cancelled = context();
  GetRequest request;
  request.key = key_;
  std::optional<Result<GetResult>> answer;
  store_.get_range(cancelled, request,
                   Completion<GetResult>(executor_, [&](auto r) { answer = std::move(r); }));
  executor_.run_all();
  EXPECT_FALSE(answer);
  cancelled.cancellation().request();
  executor_.run_all();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error().code(), StatusCode::kCancelled);
  EXPECT_EQ(clock_.armed_timers(), 0U);
}

TEST_F(Faulty, PlansAreRepeatable) {
  const auto outcomes = [](std::uint64_t seed) {
    const FaultPlan plan = random_faults(seed, {{0.3, {}}, {0.3, {.kind = Fault::Kind::kHang}}});
    std::string kinds;
    for (int i = 0; i < 1000; ++i) {
      const auto fault = plan({});
      kinds += !fault ? '.' : fault->kind == Fault::Kind::kHang ? 'h' : 'f';
    }
    return kinds;
  };
  EXPECT_EQ(outcomes(5), outcomes(5));
  EXPECT_NE(outcomes(5), outcomes(6));
  const std::string kinds = outcomes(5);
  EXPECT_NEAR(static_cast<double>(std::count(kinds.begin(), kinds.end(), '.')), 400, 60);
}

}  // namespace millrace
