#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/executor.h"
#include "base/mutex.h"
#include "base/status.h"

namespace millrace {

// The answer side of an asynchronous call: a callback and the executor that it runs on.
//
// Invariants:
//  1. The callback runs exactly once. A completion that is destroyed unanswered answers kInternal,
//     so that a lost answer is a visible error and never a hang.
//  2. It runs on the named executor, never inside complete() unless that is the inline executor;
//     callers of complete() hold no lock.
//
// Move-only. Thread-compatible: one thread at a time owns it.
template <class T>
class Completion {
 public:
  using Callback = std::move_only_function<void(Result<T>)>;

  Completion() = default;
  Completion(Executor& executor, Callback callback)
      : executor_(&executor), callback_(std::move(callback)) {}

  Completion(Completion&& other) noexcept
      : executor_(std::exchange(other.executor_, nullptr)), callback_(std::move(other.callback_)) {}
  Completion& operator=(Completion&& other) noexcept {
    if (this != &other) {
      abandon();
      executor_ = std::exchange(other.executor_, nullptr);
      callback_ = std::move(other.callback_);
    }
    return *this;
  }
  ~Completion() { abandon(); }

  // True while the answer is still owed.
  explicit operator bool() const { return executor_ != nullptr; }

  // Answers. May be called once.
  void complete(Result<T> result) {
    Executor* executor = std::exchange(executor_, nullptr);
    if (executor == &inline_executor()) {
      // Skips one type-erased task on the hottest path.
      auto callback = std::move(callback_);
      callback(std::move(result));
      return;
    }
    executor->resume([callback = std::move(callback_), result = std::move(result)]() mutable {
      callback(std::move(result));
    });
  }

 private:
  void abandon() {
    if (executor_ == nullptr) return;
    complete(failure(StatusCode::kInternal, "the operation was dropped without an answer"));
  }

  Executor* executor_ = nullptr;
  Callback callback_;
};

// Waits for one answer on the calling thread: the bridge from an asynchronous call to a blocking
// one.
//
//   Waiter<GetResult> waiter;
//   store.get_range(context, request, waiter.completion());
//   Result<GetResult> result = waiter.wait();
//
// It waits without a time limit of its own because every asynchronous call promises to answer by
// its context's deadline.
template <class T>
class Waiter {
 public:
  Completion<T> completion() {
    return Completion<T>(inline_executor(), [state = state_](Result<T> result) {
      MutexLock lock(state->mutex);
      state->result.emplace(std::move(result));
      state->answered.notify_all();
    });
  }

  Result<T> wait() {
    MutexLock lock(state_->mutex);
    while (!state_->result.has_value())
      state_->answered.wait(state_->mutex);
    return std::move(*state_->result);
  }

 private:
  struct State {
    Mutex mutex;
    CondVar answered;
    std::optional<Result<T>> result MR_GUARDED_BY(mutex);
  };
  // Shared, so that an answer that arrives late finds its place still there.
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace millrace
