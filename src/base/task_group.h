#pragma once

#include <cstddef>
#include <functional>

#include "base/limiter.h"
#include "base/linked_cancellation.h"
#include "base/mutex.h"
#include "base/thread_pool.h"

namespace millrace {

// Runs many blocking tasks, some at a time. The first failure cancels the others and is the answer
// of the whole. add() and wait() belong to one thread.
class TaskGroup {
 public:
  using GroupTask = std::function<Status(const RequestContext& context)>;

  TaskGroup(const RequestContext& context, std::size_t parallel);
  // Cancels and waits, unless wait() has been called.
  ~TaskGroup();

  // Starts a task, waiting for a place first. After a failure, of a task or of the request, it
  // starts nothing and returns the failure.
  Status add(GroupTask task);
  // Waits for all. The first failure, or success.
  Status wait();
  // Requested when the request is cancelled, and once a task has failed.
  const Cancellation& cancellation() const { return cancellation_.context().cancellation(); }

 private:
  Status first_failure() const;
  void fail(Status status);

  const LinkedCancellation cancellation_;
  Limiter places_;
  const std::size_t parallel_;

  mutable Mutex mutex_;
  Status failure_ MR_GUARDED_BY(mutex_);

  ThreadPool pool_;  // Last: its threads use the members above.
};

}  // namespace millrace
