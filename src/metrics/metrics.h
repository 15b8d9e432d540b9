#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread_stripe.h"
#include "metrics/metric_table.h"

namespace millrace {

// Only goes up. Safe from any thread; one relaxed atomic addition.
class Counter {
 public:
  void add(std::uint64_t amount = 1) {
    stripes_[thread_stripe() % kStripes].value.fetch_add(amount, std::memory_order_relaxed);
  }
  std::uint64_t value() const {
    std::uint64_t sum = 0;
    for (const Stripe& stripe : stripes_)
      sum += stripe.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  // A counter that two processors add to costs each of them as much as the read that it counts.
  static constexpr std::size_t kStripes = 8;
  struct alignas(64) Stripe {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<Stripe, kStripes> stripes_;
};

// Goes up and down. Safe from any thread.
class Gauge {
 public:
  void add(std::int64_t amount) { value_.fetch_add(amount, std::memory_order_relaxed); }
  void set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  // What was set, or the lowest of its parts while there are any.
  std::int64_t value() const MR_EXCLUDES(mutex_);
  // For one of several that have the same metric. It is a part for as long as somebody has it.
  std::shared_ptr<Gauge> part() MR_EXCLUDES(mutex_);

 private:
  std::atomic<std::int64_t> value_{0};
  mutable Mutex mutex_;
  std::vector<std::weak_ptr<Gauge>> parts_ MR_GUARDED_BY(mutex_);
};

// Counts observations in fixed buckets. Safe from any thread; a reader may see the sum of one
// observation before its bucket, which Prometheus tolerates.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds);

  void observe(double value);
  void observe(Duration duration) { observe(std::chrono::duration<double>(duration).count()); }

  std::uint64_t count() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }
  std::span<const double> bounds() const { return bounds_; }
  // Observations in the bucket that ends at bounds()[index]; index bounds().size() is the rest.
  std::uint64_t bucket(std::size_t index) const {
    return buckets_[index].load(std::memory_order_relaxed);
  }

 private:
  const std::span<const double> bounds_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> buckets_;
  std::atomic<double> sum_{0};
};

// The values of every metric of the table, all of them from the start. One object per process, made
// at the top and passed down. Asking for a series is an index computation, yet hot paths keep the
// reference that they got: it stays good as long as this object. Safe from any thread.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The series with these label values, each given by its index in the table, in the table's order.
  // The metric's type must be the method's.
  Counter& counter(MetricId id, std::initializer_list<std::size_t> label_indexes = {});
  Gauge& gauge(MetricId id, std::initializer_list<std::size_t> label_indexes = {});
  Histogram& histogram(MetricId id, std::initializer_list<std::size_t> label_indexes = {});

  // The Prometheus text format, version 0.0.4. Series of counters and histograms that never counted
  // are left out, apart from metrics without labels: most of outcome times operation never happens.
  std::string render_prometheus() const;

 private:
  struct Family;
  Family& family(MetricId id, MetricType type);

  std::vector<std::unique_ptr<Family>> families_;
};

}  // namespace millrace
