#include "base/manual_executor.h"

#include <utility>

#include <fmt/format.h>

namespace millrace {

ManualExecutor::ManualExecutor(std::uint64_t seed, std::size_t queued_tasks_max)
    : seed_(seed), queued_tasks_max_(queued_tasks_max), random_(seed) {}

ManualExecutor::~ManualExecutor() {
  // A task may own a completion, which answers through this executor when it is destroyed.
  while (pending() > 0) {
    std::deque<QueuedTask> dropped;
    MutexLock lock(mutex_);
    dropped.swap(tasks_);
    lock.unlock();
  }
}

Status ManualExecutor::submit(Task task) {
  MutexLock lock(mutex_);
  if (submitted_queued_ >= queued_tasks_max_) {
    return {StatusCode::kResourceExhausted,
            fmt::format("the manual executor is full: {} tasks are waiting", submitted_queued_)};
  }
  ++submitted_queued_;
  tasks_.push_back({std::move(task), true});
  return {};
}

void ManualExecutor::resume(Task task) {
  MutexLock lock(mutex_);
  tasks_.push_back({std::move(task), false});
}

bool ManualExecutor::run_one() {
  MutexLock lock(mutex_);
  if (tasks_.empty()) return false;
  if (seed_ != 0) {
    // Not std::uniform_int_distribution: its numbers differ between standard libraries.
    std::swap(tasks_.front(), tasks_[random_() % tasks_.size()]);
  }
  QueuedTask next = std::move(tasks_.front());
  tasks_.pop_front();
  if (next.submitted) --submitted_queued_;
  lock.unlock();
  next.task();
  return true;
}

std::size_t ManualExecutor::run_all() {
  std::size_t count = 0;
  while (run_one())
    ++count;
  return count;
}

std::size_t ManualExecutor::pending() const {
  MutexLock lock(mutex_);
  return tasks_.size();
}

}  // namespace millrace
