#include "objectstore/metered_object_store.h"

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/manual_executor.h"
#include "objectstore/memory_object_store.h"

namespace millrace {

TEST(StoreOperation, NamesAreTheLabelValuesOfTheMetricTable) {
  const MetricLabel& op = metric_spec(MetricId::kStoreOperations).labels[0];
  EXPECT_TRUE(std::equal(op.values.begin(), op.values.end(), kStoreOperationNames.begin(),
                         kStoreOperationNames.end()));
}

TEST(MeteredObjectStore, CountsOutcomesBytesLatencyAndFlight) {
  ManualClock clock;
  ManualExecutor executor;
  Metrics metrics;
  MeteredObjectStore store(
      std::make_shared<MemoryObjectStore>(
          clock, executor, MemoryObjectStoreOptions{.latency = std::chrono::milliseconds(150)}),
      metrics, clock);
  const auto context = RequestContext::background();
  ASSERT_TRUE(store.put(context, ObjectKey("a"), Slice::copy_of("0123456789"), {}));
  ASSERT_FALSE(store.head(context, ObjectKey("b")));
  const auto gets = static_cast<std::size_t>(StoreOperation::kGetRange);
  const auto heads = static_cast<std::size_t>(StoreOperation::kHead);

  GetRequest request;
  request.key = ObjectKey("a");
  request.range = ByteRange{0, 4};
  bool answered = false;
  store.get_range(context, request, Completion<GetResult>(executor, [&](auto result) {
                    answered = result.has_value();
                  }));
  EXPECT_EQ(metrics.gauge(MetricId::kStoreInFlight, {gets}).value(), 1);
  EXPECT_TRUE(clock.advance_to_next_timer());
  executor.run_all();
  EXPECT_TRUE(answered);
  EXPECT_EQ(metrics.gauge(MetricId::kStoreInFlight, {gets}).value(), 0);

  const auto outcome = [](StatusCode code) { return static_cast<std::size_t>(code); };
  EXPECT_EQ(metrics.counter(MetricId::kStoreOperations, {gets, outcome(StatusCode::kOk)}).value(),
            1U);
  EXPECT_EQ(
      metrics.counter(MetricId::kStoreOperations, {heads, outcome(StatusCode::kNotFound)}).value(),
      1U);
  EXPECT_EQ(metrics.counter(MetricId::kStoreBytes, {0}).value(), 4U);
  EXPECT_EQ(metrics.counter(MetricId::kStoreBytes, {1}).value(), 10U);
  EXPECT_NEAR(metrics.histogram(MetricId::kStoreLatency, {gets}).sum(), 0.150, 1e-9);
}

}  // namespace millrace
