#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "objectstore/object_store.h"
#include "objectstore/retry_policy.h"

namespace millrace {

// How long reads of about the same size took lately, and so after what time a read counts as slow.
//
// One window of the last samples per size class, because 64 MiB take longer than 4 KiB without
// being slow. The quantile is computed anew every few samples; asking for it is one atomic load.
// Safe from any thread.
class HedgingLatency {
 public:
  static constexpr std::size_t kWindowSamples = 1000;
  // How often the quantile is computed: a select over 1,000 numbers, shared by this many reads.
  static constexpr std::size_t kSamplesPerUpdate = 50;

  explicit HedgingLatency(const HedgePolicy& policy) : policy_(policy) {}

  void record(const GetRequest& request, Duration latency);
  // After what time this read should be hedged; nothing while hedging is off or too little is
  // known.
  std::optional<Duration> hedge_delay(const GetRequest& request) const;

 private:
  struct Window {
    Mutex mutex;
    std::vector<std::int64_t> samples_ns MR_GUARDED_BY(mutex);
    std::uint64_t recorded MR_GUARDED_BY(mutex) = 0;
    std::atomic<std::int64_t> quantile_ns{0};  // 0: not known yet.
  };
  // Up to 64 KiB, 1 MiB, 8 MiB, 64 MiB, larger, and whole objects, whose size is not known before.
  static constexpr std::size_t kClasses = 6;
  static std::size_t size_class(const GetRequest& request);

  const HedgePolicy policy_;
  std::array<Window, kClasses> windows_;
};

}  // namespace millrace
