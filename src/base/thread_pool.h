#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "base/executor.h"
#include "base/mutex.h"

namespace millrace {

struct ThreadPoolOptions {
  std::string name;  // Thread names are "<name>-<index>"; the kernel keeps 15 characters.
  std::size_t threads = 1;
  std::size_t queued_tasks_max = 1024;  // Bounds submit(); resume() is not counted.
};

// A named pool of a fixed number of threads over one bounded FIFO queue.
//
// Lifecycle: the constructor starts the threads; the destructor refuses new work, runs everything
// already queued, and joins. It must not be destroyed from one of its own threads.
class ThreadPool final : public Executor {
 public:
  explicit ThreadPool(ThreadPoolOptions options);
  ~ThreadPool() override;

  Status submit(Task task) override;
  void resume(Task task) override;
  std::string_view name() const override { return options_.name; }

  // Stops admission, drains the queue, joins the threads. Idempotent; called by the destructor.
  void shutdown();

 private:
  struct QueuedTask {
    Task task;
    bool submitted;  // Counts against queued_tasks_max.
  };

  void run(std::size_t index);

  // Constant after construction.
  const ThreadPoolOptions options_;

  Mutex mutex_;
  CondVar work_available_;
  CondVar thread_left_;
  std::vector<std::thread> threads_ MR_GUARDED_BY(mutex_);  // Moved out by who joins them.
  std::deque<QueuedTask> queue_ MR_GUARDED_BY(mutex_);
  std::size_t submitted_queued_ MR_GUARDED_BY(mutex_) = 0;
  // A thread leaves only under the lock, when stopping and the queue is empty: while this is not 0,
  // what is put into the queue will run.
  std::size_t live_threads_ MR_GUARDED_BY(mutex_) = 0;
  bool stopping_ MR_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
