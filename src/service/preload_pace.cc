#include "service/preload_pace.h"

#include <algorithm>

namespace millrace {
namespace {

constexpr Duration kCreditMax = std::chrono::seconds(1);
// A piece at one byte a second takes no longer than a clock can tell.
constexpr double kTurnSecondsMax = 1e8;

}  // namespace

void PreloadPace::take(std::uint64_t bytes, const Cancellation& cancellation) {
  if (bytes_per_second_max_ == 0) return;
  due_ = std::max(due_, clock_.now() - kCreditMax);
  clock_.sleep_until(due_, &cancellation);
  const double seconds = static_cast<double>(bytes) / static_cast<double>(bytes_per_second_max_);
  due_ += std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, kTurnSecondsMax)));
}

}  // namespace millrace
