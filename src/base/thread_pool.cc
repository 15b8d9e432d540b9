#include "base/thread_pool.h"

#include <pthread.h>

#include <cassert>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace millrace {

ThreadPool::ThreadPool(ThreadPoolOptions options) : options_(std::move(options)) {
  assert(options_.threads > 0);
  threads_.reserve(options_.threads);
  try {
    for (std::size_t i = 0; i < options_.threads; ++i) {
      MutexLock lock(mutex_);
      threads_.emplace_back([this, i] { run(i); });
      ++live_threads_;
    }
  } catch (const std::system_error& error) {
    // Those that run must be joined, or the program would end here without a word.
    shutdown();
    throw std::runtime_error(
        fmt::format("cannot start the threads of '{}': {}; raise the limit on "
                    "processes (ulimit -u)",
                    options_.name, error.what()));
  }
}

ThreadPool::~ThreadPool() { shutdown(); }

Status ThreadPool::submit(Task task) {
  MutexLock lock(mutex_);
  if (stopping_) {
    return {StatusCode::kResourceExhausted,
            fmt::format("executor '{}' is shutting down", options_.name)};
  }
  if (submitted_queued_ >= options_.queued_tasks_max) {
    return {StatusCode::kResourceExhausted,
            fmt::format("executor '{}' is full: {} tasks are waiting", options_.name,
                        submitted_queued_)};
  }
  ++submitted_queued_;
  queue_.push_back({std::move(task), true});
  // Under the lock: without it the task may run, and its owner destroy the pool, before this line.
  work_available_.notify_one();
  return {};
}

void ThreadPool::resume(Task task) {
  MutexLock lock(mutex_);
  if (live_threads_ == 0) {
    lock.unlock();
    task();
    return;
  }
  queue_.push_back({std::move(task), false});
  work_available_.notify_one();
}

void ThreadPool::shutdown() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    work_available_.notify_all();
    threads = std::exchange(threads_, {});
  }
  for (std::thread& thread : threads) {
    assert(thread.get_id() != std::this_thread::get_id() && "a pool cannot stop itself");
    thread.join();
  }
  // When another thread is already stopping the pool, its joins are waited for here.
  MutexLock lock(mutex_);
  while (live_threads_ > 0)
    thread_left_.wait(mutex_);
}

void ThreadPool::run(std::size_t index) {
  constexpr std::size_t kThreadNameMax = 15;
  const std::string name = fmt::format("{}-{}", options_.name, index).substr(0, kThreadNameMax);
  pthread_setname_np(pthread_self(), name.c_str());

  MutexLock lock(mutex_);
  while (true) {
    while (queue_.empty() && !stopping_)
      work_available_.wait(mutex_);
    if (queue_.empty()) break;
    {
      QueuedTask next = std::move(queue_.front());
      queue_.pop_front();
      if (next.submitted) --submitted_queued_;
      lock.unlock();
      next.task();
      // What the task owns goes here, before the lock is taken again.
    }
    lock.lock();
  }
  --live_threads_;
  thread_left_.notify_all();
}

}  // namespace millrace
