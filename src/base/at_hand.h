#pragma once

#include "base/status.h"

namespace millrace {

// While one lives, its thread takes only what is at hand: whoever would have to wait for a disk or
// a store refuses instead. Whoever made it then does the same again on a thread that may wait.
//
// For a thread that serves many, where what is asked for is nearly always in memory. They nest.
class AtHandOnly {
 public:
  AtHandOnly() : outer_(innermost) { innermost = this; }
  ~AtHandOnly() { innermost = outer_; }
  AtHandOnly(const AtHandOnly&) = delete;
  AtHandOnly& operator=(const AtHandOnly&) = delete;

  // Something was not at hand: whatever came of it counts for nothing.
  bool refused() const { return refused_; }

  // To be asked before waiting: kUnavailable when the thread must not.
  static Status may_wait() {
    if (innermost == nullptr) return {};
    innermost->refused_ = true;
    return {StatusCode::kUnavailable, "it is not at hand"};
  }

 private:
  static inline thread_local AtHandOnly* innermost = nullptr;

  AtHandOnly* const outer_;
  bool refused_ = false;
};

}  // namespace millrace
