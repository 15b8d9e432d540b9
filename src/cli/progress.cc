#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/units.h"

namespace millrace::cli {
namespace {

constexpr Duration kRedrawInterval = std::chrono::milliseconds(100);
constexpr double kSecondsBeforeRate = 0.2;
// Far from what a duration can hold.
constexpr double kSecondsLeftMax = 1e9;
constexpr std::size_t kBarCells = 24;

void to_terminal(std::string_view text) {
  // A progress line that cannot be written is no reason to fail.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

std::string bar(std::uint64_t done, std::uint64_t total) {
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<std::size_t>(share * kBarCells);
  return fmt::format("[{}{}] {:3.0f}%", std::string(filled, '#'),
                     std::string(kBarCells - filled, '.'), share * 100);
}

}  // namespace

Progress::Progress(bool enabled, Clock& clock, std::string label)
    : enabled_(enabled),
      clock_(clock),
      label_(std::move(label)),
      started_(clock.now()),
      drawn_(started_ - kRedrawInterval) {}

Progress::~Progress() { clear(); }

void Progress::add_total(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  total_bytes_ += bytes;
  draw();
}

void Progress::add_bytes(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  done_bytes_ += bytes;
  draw();
}

void Progress::add_objects(std::uint64_t count) {
  MutexLock lock(mutex_);
  done_objects_ += count;
  draw();
}

void Progress::show(const ProgressReport& report) {
  MutexLock lock(mutex_);
  report_ = report;
  draw();
}

void Progress::clear() {
  MutexLock lock(mutex_);
  if (visible_) to_terminal("\r\x1b[K");
  visible_ = false;
}

ProgressReport Progress::added() const {
  ProgressReport report{.done_bytes = done_bytes_};
  const double seconds = std::chrono::duration<double>(drawn_ - started_).count();
  if (seconds <= kSecondsBeforeRate) return report;
  const double rate = static_cast<double>(done_bytes_) / seconds;
  report.bytes_per_second = static_cast<std::uint64_t>(rate);
  if (total_bytes_ > done_bytes_ && rate > 1) {
    const double left = static_cast<double>(total_bytes_ - done_bytes_) / rate;
    report.time_left =
        std::chrono::seconds(static_cast<std::int64_t>(std::min(left, kSecondsLeftMax)));
  }
  return report;
}

void Progress::draw() {
  if (!enabled_ || clock_.now() - drawn_ < kRedrawInterval) return;
  drawn_ = clock_.now();
  const ProgressReport now = report_ ? *report_ : added();
  std::string line = "\r" + label_ + " ";
  if (total_bytes_ > 0) line += bar(now.done_bytes, total_bytes_) + " ";
  if (done_objects_ > 0) line += fmt::format("{} objects ", done_objects_);
  line += format_size(now.done_bytes);
  if (total_bytes_ > 0) line += " of " + format_size(total_bytes_);
  if (now.bytes_per_second > 0) line += fmt::format(", {}/s", format_size(now.bytes_per_second));
  if (now.time_left) {
    line += fmt::format(", {} left", format_duration(*now.time_left));
  }
  to_terminal(line + "\x1b[K");
  visible_ = true;
}

}  // namespace millrace::cli
