#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "service/preload.h"

namespace millrace {

// How far a preload has come, and how fast it goes. Safe from any thread.
class PreloadProgress {
 public:
  // Begins anew: so much is to be had in the end.
  void restart(TimePoint now, std::uint64_t total_bytes) MR_EXCLUDES(mutex_);
  // Some of it is there, and had to be fetched or not.
  void add(TimePoint now, std::uint64_t bytes, bool fetched) MR_EXCLUDES(mutex_);
  // What it waits for; empty when it goes on.
  void set_problem(TimePoint now, std::string problem) MR_EXCLUDES(mutex_);
  // How long there has been a problem and nothing was fetched.
  Duration stuck(TimePoint now) const MR_EXCLUDES(mutex_);
  // Fills in what the progress of a running preload is. How fast it goes is what it did of late;
  // nobody knows while it waits.
  void describe(TimePoint now, PreloadInfo& preload) const MR_EXCLUDES(mutex_);

 private:
  // By then, so much had been fetched.
  struct Mark {
    TimePoint time;
    std::uint64_t fetched_bytes = 0;
  };

  mutable Mutex mutex_;
  std::uint64_t total_bytes_ MR_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_bytes_ MR_GUARDED_BY(mutex_) = 0;
  std::uint64_t fetched_bytes_ MR_GUARDED_BY(mutex_) = 0;
  // The oldest is where the rate is taken from.
  std::deque<Mark> marks_ MR_GUARDED_BY(mutex_);
  // When the problem began, or something was fetched in spite of it.
  TimePoint stuck_since_ MR_GUARDED_BY(mutex_){};
  std::string problem_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
