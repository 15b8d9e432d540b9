#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "base/status.h"

namespace millrace {

// Saves something every now and then, on an executor. A save that fails is logged and tried again.
//
// Lifecycle: saves from start() to stop(), which waits for one that is under way. What it is made
// with outlives it. Safe from any thread.
class PeriodicSave {
 public:
  struct Parts {
    Clock& clock;
    Executor& work;  // Saves; may block.
    Duration period;
    std::string what;  // For the log: "cannot save <what>".
    std::function<Status()> save;
  };
  explicit PeriodicSave(Parts parts) : parts_(std::move(parts)) {}
  ~PeriodicSave() { stop(); }
  PeriodicSave(const PeriodicSave&) = delete;
  PeriodicSave& operator=(const PeriodicSave&) = delete;

  void start() { schedule(); }
  // Safe to repeat.
  void stop() MR_EXCLUDES(mutex_);

 private:
  void schedule() MR_EXCLUDES(mutex_);
  void save_now() MR_EXCLUDES(mutex_);

  const Parts parts_;
  Mutex mutex_;
  bool stopping_ MR_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Clock::Timer> timer_ MR_GUARDED_BY(mutex_);
  Gate saves_;  // Those that are scheduled.
};

}  // namespace millrace
