#include "metrics/metric_table.h"

#include <array>
#include <cassert>

#include "base/status.h"

namespace millrace {

namespace {

constexpr std::array<std::string_view, 10> kOperations = {
    "get_range",    "head",          "list",         "put",  "start_upload",
    "upload_write", "upload_finish", "upload_abort", "copy", "remove",
};
constexpr std::array<std::string_view, 2> kDirections = {"read", "written"};

constexpr std::size_t kOutcomeCount = static_cast<std::size_t>(StatusCode::kInternal) + 1;

// The names that logs use, in the order of the codes, so that a code is its own index.
std::span<const std::string_view> outcomes() {
  static const auto names = [] {
    std::array<std::string_view, kOutcomeCount> result;
    for (std::size_t i = 0; i < kOutcomeCount; ++i) {
      result[i] = status_code_name(static_cast<StatusCode>(i));
    }
    return result;
  }();
  return names;
}

template <std::size_t kBuckets>
constexpr std::array<double, kBuckets> log_spaced(double first, double factor) {
  std::array<double, kBuckets> bounds{};
  for (double& bound : bounds) {
    bound = first;
    first *= factor;
  }
  return bounds;
}

// 100 us (an answer from a server on the same machine) to 105 s (above any request's time-out).
constexpr auto kSecondsBuckets = log_spaced<21>(0.0001, 2);
// 1 KiB to 4 GiB: from a small sample to the largest single request of any store.
constexpr auto kBytesBuckets = log_spaced<12>(1024, 4);

}  // namespace

std::size_t MetricSpec::series_count() const {
  std::size_t count = 1;
  for (const MetricLabel& label : labels)
    count *= label.values.size();
  return count;
}

std::span<const MetricSpec> metric_table() {
  using enum MetricType;
  using enum MetricUnit;
  static const std::array<MetricLabel, 1> by_operation = {{{"op", kOperations}}};
  static const std::array<MetricLabel, 2> by_operation_and_outcome = {
      {{"op", kOperations}, {"outcome", outcomes()}}};
  static const std::array<MetricLabel, 1> by_direction = {{{"direction", kDirections}}};
  static const std::array<MetricSpec, 11> table = {{
      {MetricId::kStoreOperations, "millrace_store_operations_total", kCounter, kCount,
       "Requests to the object store that ended, retries and hedges counted one by one.",
       by_operation_and_outcome},
      {MetricId::kStoreBytes, "millrace_store_bytes_total", kCounter, kBytes,
       "Bytes of objects that passed between here and the object store.", by_direction},
      {MetricId::kStoreLatency, "millrace_store_latency_seconds", kHistogram, kSeconds,
       "Time from sending a request to the object store to its answer, failures included.",
       by_operation},
      {MetricId::kStoreReadBytes,
       "millrace_store_read_size_bytes",
       kHistogram,
       kBytes,
       "Bytes that one successful get_range delivered.",
       {}},
      {MetricId::kStoreInFlight, "millrace_store_in_flight", kGauge, kCount,
       "Requests to the object store that have not been answered yet.", by_operation},
      {MetricId::kStoreRetries,
       "millrace_store_retries_total",
       kCounter,
       kCount,
       "Attempts after the first one of an operation.",
       {}},
      {MetricId::kStoreRetryTokens,
       "millrace_store_retry_tokens",
       kGauge,
       kCount,
       "What is left of the budget for retries and hedges; at zero, first errors are final.",
       {}},
      {MetricId::kStoreRetriesRefused,
       "millrace_store_retries_refused_total",
       kCounter,
       kCount,
       "Retries that were wanted but not made because the budget was spent.",
       {}},
      {MetricId::kStoreThrottles,
       "millrace_store_throttles_total",
       kCounter,
       kCount,
       "Answers by which the object store asked for fewer requests.",
       {}},
      {MetricId::kStoreHedgesStarted,
       "millrace_store_hedges_started_total",
       kCounter,
       kCount,
       "Second GETs that were sent because the first was slower than the 99th percentile.",
       {}},
      {MetricId::kStoreHedgesWon,
       "millrace_store_hedges_won_total",
       kCounter,
       kCount,
       "Second GETs that answered before the first.",
       {}},
  }};
  return table;
}

const MetricSpec& metric_spec(MetricId id) {
  const MetricSpec& spec = metric_table()[static_cast<std::size_t>(id)];
  assert(spec.id == id && "the table is in the order of MetricId");
  return spec;
}

std::span<const double> metric_buckets(MetricUnit unit) {
  return unit == MetricUnit::kBytes ? std::span<const double>(kBytesBuckets)
                                    : std::span<const double>(kSecondsBuckets);
}

std::string_view metric_type_name(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
  }
  return "untyped";
}

std::string_view metric_unit_name(MetricUnit unit) {
  switch (unit) {
    case MetricUnit::kCount:
      return "count";
    case MetricUnit::kBytes:
      return "bytes";
    case MetricUnit::kSeconds:
      return "seconds";
  }
  return "";
}

}  // namespace millrace
