#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <thread>

#include "base/mutex.h"
#include "base/task.h"

namespace millrace {

// A request that can be called off. Shared by whoever may cancel and whoever must notice.
// All methods are safe from any thread.
class Cancellation {
 public:
  using CallbackId = std::uint64_t;

  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  // Cancels, once: runs the callbacks on this thread, outside any lock. Later calls do nothing.
  void request();
  bool requested() const { return requested_.load(std::memory_order_acquire); }

  // Calls `callback` when cancelled; at once, on this thread, if that has already happened (then
  // the id is 0). The callback must be short and must not destroy this object.
  CallbackId subscribe(Task callback) const;
  // After this returns the callback neither runs nor will run: waits for one that is running. From
  // inside the callback itself it returns at once, so that a callback may destroy its owner.
  void unsubscribe(CallbackId id) const;

 private:
  // Set once, under the lock; read without it, since every loop asks it.
  std::atomic<bool> requested_ = false;

  mutable Mutex mutex_;
  mutable CondVar callback_done_;
  mutable std::map<CallbackId, Task> callbacks_ MR_GUARDED_BY(mutex_);
  mutable CallbackId next_id_ MR_GUARDED_BY(mutex_) = 1;
  // The callback that request() is in, 0 for none, and the thread of request().
  CallbackId running_id_ MR_GUARDED_BY(mutex_) = 0;
  std::thread::id running_thread_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
