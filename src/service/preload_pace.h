#pragma once

#include <chrono>
#include <cstdint>

#include "base/cancellation.h"
#include "base/clock.h"

namespace millrace {

// Lets bytes go no faster than asked for. What was not used while nothing could be fetched is not
// caught up with, but for a second's worth. For one thread.
class PreloadPace {
 public:
  // 0: as fast as it goes.
  PreloadPace(Clock& clock, std::uint64_t bytes_per_second_max)
      : clock_(clock), bytes_per_second_max_(bytes_per_second_max), due_(clock.now()) {}

  // Waits until it is the bytes' turn, or the cancellation.
  void take(std::uint64_t bytes, const Cancellation& cancellation);

 private:
  Clock& clock_;
  const std::uint64_t bytes_per_second_max_;
  TimePoint due_;
};

}  // namespace millrace
