#include "base/cancellation.h"

#include <utility>

namespace millrace {

void Cancellation::request() {
  MutexLock lock(mutex_);
  if (requested_.exchange(true)) return;
  // One at a time, so that a callback may unsubscribe others and nobody waits for more than one.
  while (!callbacks_.empty()) {
    auto node = callbacks_.extract(callbacks_.begin());
    running_id_ = node.key();
    running_thread_ = std::this_thread::get_id();
    lock.unlock();
    node.mapped()();
    // What the callback owns goes before unsubscribe() returns to somebody who relies on that.
    node.mapped() = nullptr;
    lock.lock();
    running_id_ = 0;
    callback_done_.notify_all();
  }
}

Cancellation::CallbackId Cancellation::subscribe(Task callback) const {
  MutexLock lock(mutex_);
  if (requested()) {
    lock.unlock();
    callback();
    return 0;
  }
  const CallbackId id = next_id_++;
  callbacks_.emplace(id, std::move(callback));
  return id;
}

void Cancellation::unsubscribe(CallbackId id) const {
  if (id == 0) return;
  MutexLock lock(mutex_);
  const auto node = callbacks_.extract(id);
  if (node.empty() && running_thread_ != std::this_thread::get_id()) {
    while (running_id_ == id)
      callback_done_.wait(mutex_);
  }
  lock.unlock();
  // A callback that did not run is destroyed with `node`, after the lock.
}

}  // namespace millrace
