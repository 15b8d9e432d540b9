#include "service/preload_progress.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

// Long enough to be steady, and short enough that an outage is soon forgotten.
constexpr Duration kRateWindow = std::chrono::seconds(30);
constexpr Duration kMarkInterval = std::chrono::seconds(1);
// One that may fetch a block a minute has a rate too.
constexpr std::size_t kMarksMin = 8;
// What takes longer takes for ever. A duration holds it, which that of a trickle would not.
constexpr Duration kTimeLeftMax = std::chrono::days(365);

Duration time_for(std::uint64_t bytes, double bytes_per_second) {
  const double seconds = static_cast<double>(bytes) / bytes_per_second;
  constexpr double kSecondsMax = std::chrono::duration<double>(kTimeLeftMax).count();
  if (seconds >= kSecondsMax) return kTimeLeftMax;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

void PreloadProgress::restart(TimePoint now, std::uint64_t total_bytes) {
  MutexLock lock(mutex_);
  total_bytes_ = total_bytes;
  done_bytes_ = 0;
  fetched_bytes_ = 0;
  marks_ = {{.time = now, .fetched_bytes = 0}};
}

void PreloadProgress::add(TimePoint now, std::uint64_t bytes, bool fetched) {
  MutexLock lock(mutex_);
  done_bytes_ += bytes;
  if (!fetched) return;
  fetched_bytes_ += bytes;
  stuck_since_ = std::max(stuck_since_, now);
  if (marks_.empty() || now - marks_.back().time >= kMarkInterval) {
    marks_.push_back({.time = now, .fetched_bytes = fetched_bytes_});
  }
  while (marks_.size() > kMarksMin && marks_.front().time < now - kRateWindow)
    marks_.pop_front();
}

void PreloadProgress::set_problem(TimePoint now, std::string problem) {
  MutexLock lock(mutex_);
  if (problem_.empty()) stuck_since_ = now;
  problem_ = std::move(problem);
}

Duration PreloadProgress::stuck(TimePoint now) const {
  MutexLock lock(mutex_);
  return problem_.empty() ? Duration::zero() : now - stuck_since_;
}

void PreloadProgress::describe(TimePoint now, PreloadInfo& preload) const {
  MutexLock lock(mutex_);
  preload.bytes_done = done_bytes_;
  preload.bytes_total = total_bytes_;
  preload.problem = problem_;
  if (marks_.empty() || !problem_.empty()) return;
  const double seconds = std::chrono::duration<double>(now - marks_.front().time).count();
  const std::uint64_t bytes = fetched_bytes_ - marks_.front().fetched_bytes;
  if (seconds <= 0 || bytes == 0) return;
  const double rate = static_cast<double>(bytes) / seconds;
  const std::uint64_t rest = total_bytes_ - std::min(total_bytes_, done_bytes_);
  preload.bytes_per_second = static_cast<std::uint64_t>(rate);
  preload.time_left = time_for(rest, rate);
}

}  // namespace millrace
