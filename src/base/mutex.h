#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// Clang's thread-safety attributes; nothing under other compilers. `make check` builds with clang
// and treats a violation as an error.
#if defined(__clang__)
#define MR_TSA(x) __attribute__((x))
#else
#define MR_TSA(x)
#endif

#define MR_GUARDED_BY(x) MR_TSA(guarded_by(x))
#define MR_REQUIRES(...) MR_TSA(requires_capability(__VA_ARGS__))
#define MR_EXCLUDES(...) MR_TSA(locks_excluded(__VA_ARGS__))

namespace millrace {

class CondVar;

// std::mutex that clang can reason about.
class MR_TSA(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() MR_TSA(acquire_capability()) { mutex_.lock(); }
  void unlock() MR_TSA(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a Mutex for a scope. unlock() and lock() let a scope drop it around a callback.
class MR_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) MR_TSA(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() MR_TSA(release_capability()) {
    if (held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() MR_TSA(release_capability()) {
    mutex_.unlock();
    held_ = false;
  }
  void lock() MR_TSA(acquire_capability()) {
    mutex_.lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

// Condition variable for Mutex. Waits may wake spuriously: always wait in a loop that tests the
// condition, which also keeps the analysis able to see the guarded reads.
class CondVar {
 public:
  void wait(Mutex& mutex) MR_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // Returns false when `deadline` passed without a notification.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point deadline) MR_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool notified = cv_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  void notify_one() { cv_.notify_one(); }
  void notify_all() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace millrace
