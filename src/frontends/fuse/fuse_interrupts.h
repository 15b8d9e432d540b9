#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "frontends/fuse/fuse_calls.h"

namespace millrace {

// Calls off the requests of those who are about to die.
//
// The kernel tells of every signal that comes for who waits for an answer: of a kill, and of a
// timer that has a handler. What is called off fails (EINTR), and a program with a timer shorter
// than the way to the store would get nowhere; so a request goes on unless its thread dies. The
// kernel tells of the first signal alone: who had one is looked at again and again, by one thread
// for all of them, which starts with the first.
//
// All methods are safe from any thread. The calls outlive it.
class FuseInterrupts {
 public:
  // `call_off` is called by any thread, without locks.
  FuseInterrupts(FuseCalls& calls, std::function<void(std::uint64_t unique)> call_off)
      : calls_(calls), call_off_(std::move(call_off)) {}
  ~FuseInterrupts();
  FuseInterrupts(const FuseInterrupts&) = delete;
  FuseInterrupts& operator=(const FuseInterrupts&) = delete;

  // A signal came for who waits for this request. False when there is no such request, or not yet.
  bool add(std::uint64_t unique) MR_EXCLUDES(mutex_);

 private:
  static constexpr Duration kLookAgainAfter = std::chrono::milliseconds(100);

  // False when there is no thread for it.
  bool watch_from_now_on() MR_EXCLUDES(mutex_);
  void watch() MR_EXCLUDES(mutex_);
  // False when there is nobody left to look at.
  bool look_again();

  FuseCalls& calls_;
  const std::function<void(std::uint64_t unique)> call_off_;

  Mutex mutex_;
  CondVar changed_;
  bool has_some_ MR_GUARDED_BY(mutex_) = false;
  bool ends_ MR_GUARDED_BY(mutex_) = false;
  std::thread watcher_ MR_GUARDED_BY(mutex_);
};

// Whether a signal that ends the thread waits for it, by its /proc/TID/status.
bool is_about_to_die(std::string_view status);

}  // namespace millrace
