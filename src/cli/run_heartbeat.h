#pragma once

#include <memory>
#include <thread>

#include "base/cancellation.h"
#include "base/clock.h"
#include "dataset/run_log.h"

namespace millrace::cli {

// Tells the registry once in each period that a run is alive, from a thread of its own.
//
// Lifecycle: beats from construction to stop() or destruction; the recording belongs to it until
// then. What is referred to outlives it.
class RunHeartbeat {
 public:
  RunHeartbeat(Clock& clock, const RunLog& runs, RunRecording& recording, Duration timeout);
  ~RunHeartbeat();
  RunHeartbeat(const RunHeartbeat&) = delete;
  RunHeartbeat& operator=(const RunHeartbeat&) = delete;

  // Ends the thread, and a beat that is under way. The failure of the last beat, if it failed.
  // Safe to repeat.
  Status stop();

 private:
  void beat();

  Clock& clock_;
  const RunLog& runs_;
  RunRecording& recording_;
  const Duration timeout_;
  const std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
  // Written by the thread, read once it has ended.
  Status last_;
  std::thread thread_;
};

}  // namespace millrace::cli
