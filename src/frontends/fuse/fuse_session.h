#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "frontends/fuse/fuse_connection.h"
#include "frontends/fuse/fuse_request.h"

namespace millrace {

// Serves one mount: takes the kernel's requests and has them answered.
//
// Lifecycle: start() or take_over() once; stop() or the destructor ends the service, and leaves the
// mount to whoever holds the device then. The mount itself is the owner's to make and to end.
// Threads are added with the load: one always waits for the next request, so that requests that
// block on the store do not hold up those that need not.
class FuseSession {
 public:
  FuseSession(FuseDevice device, OpenTable table, const FuseView& view, const FuseParts& parts);
  ~FuseSession();

  // Begins a new mount.
  void start();
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

  void add_thread() MR_EXCLUDES(mutex_);
  void serve();
  void dispatch(ByteView bytes);
  void initialise(const FuseRequest& request);
  void interrupt(const FuseRequest& request);

  FuseConnection connection_;
  const RequestContext hold_context_ = RequestContext::background();
  std::thread holding_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> over_ = false;
  std::atomic<std::size_t> idle_ = 0;
  std::atomic<std::size_t> running_ = 0;

  Mutex mutex_;
  std::vector<std::thread> threads_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
