#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "frontends/fuse/fuse_connection.h"
#include "frontends/fuse/fuse_interrupts.h"
#include "frontends/fuse/fuse_operations.h"
#include "frontends/fuse/fuse_request.h"

namespace millrace {

// Serves one mount: takes the kernel's requests and has them answered.
//
// Lifecycle: start() or take_over() once; stop() or the destructor ends the service, and leaves the
// mount to whoever holds the device then. The mount itself is the owner's to make and to end.
// Threads are added with the load: one always waits for the next request, so that requests that
// block on the store do not hold up those that need not. Also when all that may block do: one
// thread is left to take what the kernel sends. It answers what this machine has, and takes
// interrupts, since who waits for an answer can only be killed by one. All other calls wait for a
// thread that may block, and are tried again meanwhile: what they want may have come.
class FuseSession {
 public:
  FuseSession(FuseDevice device, OpenTable table, const FuseView& view, const FuseParts& parts);
  ~FuseSession();

  // Begins a new mount. kResourceExhausted when there is no thread to serve it.
  Status start();
  // Goes on with a mount that another process served until it was killed.
  Status take_over();
  // Takes no more requests, and waits until those under way are answered; from `deadline` on they
  // are called off.
  void stop(TimePoint deadline) MR_EXCLUDES(mutex_);

  // The kernel let go: it was unmounted.
  bool is_over() const { return over_; }
  const FuseConnection& connection() const { return connection_; }
  FuseConnection& connection() { return connection_; }

 private:
  static constexpr std::size_t kThreadsMax = 64;
  // How often waiting calls are tried again, and for how long: the kernel's next request should not
  // have to wait.
  static constexpr Duration kBetweenTries = std::chrono::milliseconds(100);
  static constexpr Duration kTryingMax = std::chrono::milliseconds(20);

  // A call that no thread has time for. The kernel bounds them: a process waits for each, or it is
  // one of those that read ahead.
  struct WaitingCall {
    FuseOperation operation;
    FuseCall call;
    std::vector<std::byte> request;
    std::uint64_t place = 0;  // In the order of arrival; 0 until it waits.
  };
  using WaitingCalls = std::map<std::uint64_t, WaitingCall>;

  void add_thread() MR_EXCLUDES(mutex_);
  void serve();
  // Has another thread wait for requests meanwhile.
  template <class Work>
  void run_busy(const Work& work) MR_EXCLUDES(mutex_);
  void dispatch(ByteView bytes);
  // False when as many calls run as may. Else the caller runs one, and ends it with end_call().
  bool begin_call();
  void end_call() { --calls_at_once_; }
  void run_waiting() MR_EXCLUDES(mutex_);
  // Answers a call with what is at hand, or has it wait.
  void try_at_hand(WaitingCall waiting) MR_EXCLUDES(mutex_);
  // Nothing before its time, however much the kernel sends meanwhile.
  void try_waiting_again() MR_EXCLUDES(mutex_);
  void add_waiting(WaitingCall waiting) MR_EXCLUDES(mutex_);
  // The one that waits for longest; the next one behind a place, or else that one; that of a
  // request.
  std::optional<WaitingCall> take_waiting() MR_EXCLUDES(mutex_);
  std::optional<WaitingCall> take_waiting_behind(std::uint64_t place) MR_EXCLUDES(mutex_);
  std::optional<WaitingCall> take_waiting_of(std::uint64_t unique) MR_EXCLUDES(mutex_);
  std::optional<WaitingCall> take_waiting(WaitingCalls::iterator found) MR_REQUIRES(mutex_);
  void initialise(const FuseRequest& request);
  void interrupt(const FuseRequest& request);
  void call_off(std::uint64_t unique) MR_EXCLUDES(mutex_);

  FuseConnection connection_;
  const RequestContext hold_context_ = RequestContext::background();
  std::thread holding_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> over_ = false;
  std::atomic<std::size_t> idle_ = 0;
  std::atomic<std::size_t> running_ = 0;
  std::atomic<std::size_t> calls_at_once_ = 0;
  std::atomic<std::size_t> waiting_count_ = 0;
  std::atomic<TimePoint> next_try_ = TimePoint::min();
  std::atomic<std::uint64_t> last_tried_ = 0;

  Mutex mutex_;
  std::vector<std::thread> threads_ MR_GUARDED_BY(mutex_);
  bool lacks_threads_ MR_GUARDED_BY(mutex_) = false;  // And said so.
  WaitingCalls waiting_ MR_GUARDED_BY(mutex_);
  std::uint64_t last_place_ MR_GUARDED_BY(mutex_) = 0;

  // Last: its thread uses the others until it is gone.
  FuseInterrupts interrupts_{connection_.calls, [this](std::uint64_t unique) { call_off(unique); }};
};

}  // namespace millrace
