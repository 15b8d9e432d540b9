#include "metrics/metrics.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <iterator>
#include <optional>

#include <fmt/format.h>

namespace millrace {

// One of the three is filled, by the metric's type. Deques, because atomics cannot move.
struct Metrics::Family {
  const MetricSpec* spec = nullptr;
  std::deque<Counter> counters;
  std::deque<Gauge> gauges;
  std::deque<Histogram> histograms;
};

namespace {

std::size_t series_index(const MetricSpec& spec, std::initializer_list<std::size_t> label_indexes) {
  assert(label_indexes.size() == spec.labels.size() && "one index for each label of the metric");
  std::size_t index = 0;
  const MetricLabel* label = spec.labels.data();
  for (const std::size_t value : label_indexes) {
    assert(value < label->values.size() && "a label value that the table does not have");
    index = index * label->values.size() + value;
    ++label;
  }
  return index;
}

// {op="put",outcome="ok"}, with `extra` as the last one; empty without labels.
std::string label_text(const MetricSpec& spec, std::size_t index, std::string_view extra = {}) {
  std::string text(extra);
  for (std::size_t i = spec.labels.size(); i-- > 0;) {
    const MetricLabel& label = spec.labels[i];
    const std::string_view value = label.values[index % label.values.size()];
    index /= label.values.size();
    text = fmt::format("{}=\"{}\"{}{}", label.name, value, text.empty() ? "" : ",", text);
  }
  return text.empty() ? text : "{" + text + "}";
}

void render_histogram(const MetricSpec& spec, std::size_t index, const Histogram& histogram,
                      std::string& out) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i <= histogram.bounds().size(); ++i) {
    total += histogram.bucket(i);
    const std::string bound = i < histogram.bounds().size()
                                  ? fmt::format("le=\"{:g}\"", histogram.bounds()[i])
                                  : "le=\"+Inf\"";
    fmt::format_to(std::back_inserter(out), "{}_bucket{} {}\n", spec.name,
                   label_text(spec, index, bound), total);
  }
  const std::string labels = label_text(spec, index);
  fmt::format_to(std::back_inserter(out), "{}_sum{} {}\n", spec.name, labels, histogram.sum());
  fmt::format_to(std::back_inserter(out), "{}_count{} {}\n", spec.name, labels, total);
}

std::string counter_text(const MetricSpec& spec, std::uint64_t value) {
  if (spec.unit != MetricUnit::kSeconds) return fmt::format("{}", value);
  constexpr std::uint64_t kMicroseconds = 1'000'000;
  return fmt::format("{}.{:06}", value / kMicroseconds, value % kMicroseconds);
}

}  // namespace

std::int64_t Gauge::value() const {
  MutexLock lock(mutex_);
  std::optional<std::int64_t> lowest;
  for (const std::weak_ptr<Gauge>& each : parts_) {
    const std::shared_ptr<Gauge> part = each.lock();
    if (part == nullptr) continue;
    const std::int64_t value = part->value();
    lowest = std::min(lowest.value_or(value), value);
  }
  return lowest.value_or(value_.load(std::memory_order_relaxed));
}

std::shared_ptr<Gauge> Gauge::part() {
  auto part = std::make_shared<Gauge>();
  MutexLock lock(mutex_);
  std::erase_if(parts_, [](const std::weak_ptr<Gauge>& each) { return each.expired(); });
  parts_.push_back(part);
  return part;
}

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds), buckets_(new std::atomic<std::uint64_t>[bounds.size() + 1] {}) {}

void Histogram::observe(double value) {
  // A bucket holds what is at most its bound, as Prometheus has it.
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  buckets_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::uint64_t Histogram::count() const {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i <= bounds_.size(); ++i)
    total += bucket(i);
  return total;
}

Metrics::Metrics() {
  for (const MetricSpec& spec : metric_table()) {
    Family& family = *families_.emplace_back(std::make_unique<Family>());
    family.spec = &spec;
    for (std::size_t i = 0; i < spec.series_count(); ++i) {
      switch (spec.type) {
        case MetricType::kCounter:
          family.counters.emplace_back();
          break;
        case MetricType::kGauge:
          family.gauges.emplace_back();
          break;
        case MetricType::kHistogram:
          family.histograms.emplace_back(metric_buckets(spec.unit));
          break;
      }
    }
  }
}

Metrics::~Metrics() = default;

Metrics::Family& Metrics::family(MetricId id, MetricType type) {
  Family& found = *families_[static_cast<std::size_t>(id)];
  assert(found.spec->id == id && found.spec->type == type && "the metric has another type");
  return found;
}

Counter& Metrics::counter(MetricId id, std::initializer_list<std::size_t> label_indexes) {
  Family& found = family(id, MetricType::kCounter);
  return found.counters[series_index(*found.spec, label_indexes)];
}

Gauge& Metrics::gauge(MetricId id, std::initializer_list<std::size_t> label_indexes) {
  Family& found = family(id, MetricType::kGauge);
  return found.gauges[series_index(*found.spec, label_indexes)];
}

Histogram& Metrics::histogram(MetricId id, std::initializer_list<std::size_t> label_indexes) {
  Family& found = family(id, MetricType::kHistogram);
  return found.histograms[series_index(*found.spec, label_indexes)];
}

std::string Metrics::render_prometheus() const {
  std::string out;
  for (const auto& owned : families_) {
    const Family& family = *owned;
    const MetricSpec& spec = *family.spec;
    const bool keep_zero = spec.labels.empty();
    std::string series;
    for (std::size_t i = 0; i < family.counters.size(); ++i) {
      const std::uint64_t value = family.counters[i].value();
      if (value == 0 && !keep_zero) continue;
      fmt::format_to(std::back_inserter(series), "{}{} {}\n", spec.name, label_text(spec, i),
                     counter_text(spec, value));
    }
    for (std::size_t i = 0; i < family.gauges.size(); ++i) {
      fmt::format_to(std::back_inserter(series), "{}{} {}\n", spec.name, label_text(spec, i),
                     family.gauges[i].value());
    }
    for (std::size_t i = 0; i < family.histograms.size(); ++i) {
      if (family.histograms[i].count() == 0 && !keep_zero) continue;
      render_histogram(spec, i, family.histograms[i], series);
    }
    if (series.empty()) continue;
    fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n{}", spec.name, spec.help,
                   spec.name, metric_type_name(spec.type), series);
  }
  return out;
}

}  // namespace millrace
