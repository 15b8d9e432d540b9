#include "metrics/metrics.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "metrics/metric_page.h"

namespace millrace {

TEST(MetricTable, IsInOrderAndFollowsPrometheusNaming) {
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (const MetricSpec& spec : metric_table()) {
    EXPECT_EQ(static_cast<std::size_t>(spec.id), index++);
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name << " is there twice";
    EXPECT_TRUE(spec.name.starts_with("millrace_")) << spec.name;
    EXPECT_EQ(spec.name.ends_with("_total"), spec.type == MetricType::kCounter) << spec.name;
    EXPECT_TRUE(spec.help.ends_with('.')) << spec.name << ": help is a sentence";
    EXPECT_LE(spec.series_count(), 500U) << spec.name << " has too many series";
    if (spec.type != MetricType::kCounter && spec.unit == MetricUnit::kSeconds) {
      EXPECT_TRUE(spec.name.ends_with("_seconds")) << spec.name;
    }
  }
}

TEST(Metrics, EverySeriesIsItsOwn) {
  Metrics metrics;
  metrics.counter(MetricId::kStoreOperations, {0, 1}).add(3);
  metrics.counter(MetricId::kStoreOperations, {1, 0}).add(5);
  EXPECT_EQ(metrics.counter(MetricId::kStoreOperations, {0, 1}).value(), 3U);
  EXPECT_EQ(metrics.counter(MetricId::kStoreOperations, {1, 0}).value(), 5U);
  EXPECT_EQ(metrics.counter(MetricId::kStoreOperations, {0, 0}).value(), 0U);
}

TEST(Metrics, AGaugeWithPartsIsTheLowest) {
  Gauge gauge;
  gauge.set(5);
  auto low = gauge.part();
  const auto high = gauge.part();
  high->set(100);
  low->set(-3);
  EXPECT_EQ(gauge.value(), -3);
  high->set(50);
  EXPECT_EQ(gauge.value(), -3);
  low->set(70);
  EXPECT_EQ(gauge.value(), 50);
  high->set(90);
  low.reset();
  EXPECT_EQ(gauge.value(), 90);
}

TEST(Metrics, RendersPrometheusText) {
  Metrics metrics;
  metrics.counter(MetricId::kStoreOperations, {3, 0}).add(2);
  metrics.gauge(MetricId::kStoreRetryTokens).set(-7);
  Histogram& latency = metrics.histogram(MetricId::kStoreLatency, {0});
  latency.observe(std::chrono::microseconds(50));
  latency.observe(std::chrono::microseconds(150));
  latency.observe(std::chrono::hours(1));
  const std::string text = metrics.render_prometheus();
  for (const char* line : {
           "# TYPE millrace_store_operations_total counter\n",
           "millrace_store_operations_total{op=\"put\",outcome=\"ok\"} 2\n",
           "millrace_store_retry_tokens -7\n",
           "# TYPE millrace_store_latency_seconds histogram\n",
           "millrace_store_latency_seconds_bucket{op=\"get_range\",le=\"0.0001\"} 1\n",
           "millrace_store_latency_seconds_bucket{op=\"get_range\",le=\"0.0002\"} 2\n",
           "millrace_store_latency_seconds_bucket{op=\"get_range\",le=\"+Inf\"} 3\n",
           "millrace_store_latency_seconds_count{op=\"get_range\"} 3\n",
           "millrace_store_hedges_won_total 0\n",
       }) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is not in\n" << text;
  }
  EXPECT_EQ(text.find("outcome=\"not_found\""), std::string::npos);
  EXPECT_TRUE(text.ends_with('\n'));
}

TEST(Metrics, CountersOfTimeAreGivenMicroseconds) {
  Metrics metrics;
  metrics.counter(MetricId::kLoaderTime, {static_cast<std::size_t>(LoaderMetricStage::kWaiting)})
      .add(12'000'345);
  EXPECT_NE(metrics.render_prometheus().find(
                "millrace_loader_stage_seconds_total{stage=\"waiting\"} 12.000345\n"),
            std::string::npos);
}

TEST(Histogram, ABoundBelongsToItsBucket) {
  static constexpr double kBounds[] = {1, 2, 4};
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1.0, 1.5, 2.0, 4.0, 4.1})
    histogram.observe(value);
  EXPECT_EQ(histogram.bucket(0), 2U);
  EXPECT_EQ(histogram.bucket(1), 2U);
  EXPECT_EQ(histogram.bucket(2), 1U);
  EXPECT_EQ(histogram.bucket(3), 1U);
  EXPECT_DOUBLE_EQ(histogram.sum(), 13.1);
}

TEST(Metrics, ThreadsLoseNoCount) {
  Metrics metrics;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 10'000; ++n) {
          metrics.counter(MetricId::kStoreRetries).add();
          metrics.histogram(MetricId::kStoreReadBytes).observe(4096.0);
        }
      });
    }
  }
  EXPECT_EQ(metrics.counter(MetricId::kStoreRetries).value(), 40'000U);
  EXPECT_EQ(metrics.histogram(MetricId::kStoreReadBytes).count(), 40'000U);
  EXPECT_DOUBLE_EQ(metrics.histogram(MetricId::kStoreReadBytes).sum(), 40'000 * 4096.0);
}

TEST(MetricPage, IsWhatTheTableRenders) {
  const char* root = std::getenv("MILLRACE_SOURCE_DIR");
  ASSERT_NE(root, nullptr) << "set MILLRACE_SOURCE_DIR, as ctest does";
  const std::string path = std::string(root) + "/docs/metrics.md";
  if (std::getenv("MILLRACE_UPDATE_DOCS") != nullptr) std::ofstream(path) << render_metric_page();
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), render_metric_page())
      << "run MILLRACE_UPDATE_DOCS=1 ctest -R metrics_tests and commit docs/metrics.md";
}

}  // namespace millrace
