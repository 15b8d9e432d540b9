#pragma once

#include <utility>

#include "base/executor.h"

namespace millrace {

// Where answers to reads are written. What is at hand is answered at once, on the thread that took
// the request: for a warm read the way to another thread costs more than the read. What comes later
// is answered on `late`, since copying it to the kernel would hold up the network's threads.
class FuseReplies final : public Executor {
 public:
  explicit FuseReplies(Executor& late) : late_(late) {}

  // Marks the calling thread as one that takes requests.
  class TakesRequests {
   public:
    TakesRequests() { is_taker() = true; }
    ~TakesRequests() { is_taker() = false; }
    TakesRequests(const TakesRequests&) = delete;
    TakesRequests& operator=(const TakesRequests&) = delete;
  };

  Status submit(Task task) override {
    if (!is_taker()) return late_.submit(std::move(task));
    task();
    return {};
  }
  void resume(Task task) override {
    if (!is_taker()) return late_.resume(std::move(task));
    task();
  }
  std::string_view name() const override { return "fuse replies"; }

 private:
  // Of the calling thread.
  static bool& is_taker() {
    thread_local bool takes_requests = false;
    return takes_requests;
  }

  Executor& late_;
};

}  // namespace millrace
