#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <thread>

#include "base/cancellation.h"
#include "base/clock.h"

namespace millrace::cli {

// Turns SIGINT and SIGTERM into a cancellation, so that commands stop where they stand, give back
// what they hold in the store and remove their temporary files. A second signal, or ten seconds
// without an end, stops the process at once. Also makes SIGPIPE an error of write().
//
// Lifecycle: made on the main thread before any other thread, because it blocks the signals for
// every thread that is started afterwards. One per process.
class Interrupt {
 public:
  explicit Interrupt(std::shared_ptr<Cancellation> cancellation);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The signal that arrived, 0 when none did.
  int signal() const { return signal_.load(); }
  // Becomes readable when a signal arrives: for poll() beside a descriptor that may never be ready.
  int fd() const { return wake_fd_; }

  // From now on a signal is how the command is asked to end: it does so within `grace`, or the
  // process is stopped, and the exit code is the command's own. A second signal still ends it at
  // once. Safe from any thread.
  void expect(Duration grace);
  bool expected() const { return expected_.load(); }

  // From now on signals are passed on to a child instead of ending this process, however many come
  // and however long it takes; 0 ends that. Ctrl-C on a terminal is not passed on: it has reached
  // the child already. Safe from any thread. The child must not be reaped before this is ended,
  // else the signal could reach a stranger.
  void pass_on_to(pid_t child) { child_.store(child); }

 private:
  void watch();

  const std::shared_ptr<Cancellation> cancellation_;
  int signal_fd_ = -1;
  int wake_fd_ = -1;
  int stop_fd_ = -1;
  std::atomic<int> signal_ = 0;
  std::atomic<pid_t> child_ = 0;
  std::atomic<int> grace_ms_;
  std::atomic<bool> expected_ = false;
  std::thread thread_;
};

}  // namespace millrace::cli
