#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"

namespace millrace::cli {

// What somebody else says of a transfer, who knows how fast it goes.
struct ProgressReport {
  std::uint64_t done_bytes = 0;
  std::uint64_t bytes_per_second = 0;  // 0 while nobody knows.
  std::optional<Duration> time_left = {};
};

// A line on a terminal that says how far a transfer is, redrawn at most ten times a second and
// removed at the end. Draws nothing when `enabled` is false (pipes, --quiet, --json).
//
// All methods are safe from any thread.
class Progress {
 public:
  Progress(bool enabled, Clock& clock, std::string label);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // What there is to do, as far as it is known; 0 while unknown.
  void add_total(std::uint64_t bytes);
  void add_bytes(std::uint64_t bytes);
  void add_objects(std::uint64_t count);
  // In place of what was added.
  void show(const ProgressReport& report);
  // Removes the line, so that other text can be written.
  void clear();

 private:
  void draw() MR_REQUIRES(mutex_);
  // What was added, at the rate since the start.
  ProgressReport added() const MR_REQUIRES(mutex_);

  // Constant after construction.
  const bool enabled_;
  Clock& clock_;
  const std::string label_;
  const TimePoint started_;

  Mutex mutex_;
  std::uint64_t total_bytes_ MR_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_bytes_ MR_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_objects_ MR_GUARDED_BY(mutex_) = 0;
  std::optional<ProgressReport> report_ MR_GUARDED_BY(mutex_);
  TimePoint drawn_ MR_GUARDED_BY(mutex_);
  bool visible_ MR_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace::cli
