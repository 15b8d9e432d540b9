#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/completion.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/status.h"

namespace millrace {

// Answers of reads that were started together.
//
// Slots are written by who answers, each once; wait() makes them visible.
class ReadAnswers {
 public:
  explicit ReadAnswers(std::size_t count) : slots_(count), owed_(count + 1) {}

  void answer(std::size_t slot, Result<Slice> result) {
    slots_[slot].emplace(std::move(result));
    settle();
  }
  // Answers a slot of answers that live until then.
  static Completion<Slice> completion(std::shared_ptr<ReadAnswers> answers, std::size_t slot) {
    return Completion<Slice>(inline_executor(),
                             [answers = std::move(answers), slot](Result<Slice> result) {
                               answers->answer(slot, std::move(result));
                             });
  }
  // Once, after all reads were started.
  void wait() {
    settle();
    MutexLock lock(mutex_);
    while (!all_answered_)
      answered_.wait(mutex_);
  }
  Result<Slice>& at(std::size_t slot) { return *slots_[slot]; }

 private:
  void settle() {
    if (owed_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    MutexLock lock(mutex_);
    all_answered_ = true;
    answered_.notify_all();
  }

  std::vector<std::optional<Result<Slice>>> slots_;
  std::atomic<std::size_t> owed_;
  Mutex mutex_;
  CondVar answered_;
  bool all_answered_ MR_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
