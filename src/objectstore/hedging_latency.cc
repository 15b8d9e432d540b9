#include "objectstore/hedging_latency.h"

#include <algorithm>

namespace millrace {

std::size_t HedgingLatency::size_class(const GetRequest& request) {
  if (!request.range) return kClasses - 1;
  static constexpr std::array<std::uint64_t, kClasses - 2> kBounds = {64 * kKiB, kMiB, 8 * kMiB,
                                                                      64 * kMiB};
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), request.range->length);
  return static_cast<std::size_t>(bound - kBounds.begin());
}

void HedgingLatency::record(const GetRequest& request, Duration latency) {
  if (!policy_.enabled) return;
  Window& window = windows_[size_class(request)];
  std::vector<std::int64_t> samples;
  {
    MutexLock lock(window.mutex);
    if (window.samples_ns.size() < kWindowSamples) {
      window.samples_ns.push_back(latency.count());
    } else {
      window.samples_ns[window.recorded % kWindowSamples] = latency.count();
    }
    ++window.recorded;
    if (window.recorded % kSamplesPerUpdate != 0) return;
    if (window.samples_ns.size() < policy_.samples_min) return;
    samples = window.samples_ns;
  }
  const auto rank =
      static_cast<std::size_t>(policy_.quantile * static_cast<double>(samples.size()));
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>(std::min(rank, samples.size() - 1));
  std::nth_element(samples.begin(), at, samples.end());
  window.quantile_ns.store(std::max<std::int64_t>(*at, 1), std::memory_order_relaxed);
}

std::optional<Duration> HedgingLatency::hedge_delay(const GetRequest& request) const {
  if (!policy_.enabled) return {};
  const std::int64_t quantile =
      windows_[size_class(request)].quantile_ns.load(std::memory_order_relaxed);
  if (quantile == 0) return {};
  return std::max(Duration(quantile), policy_.delay_min);
}

}  // namespace millrace
