#pragma once

#include <algorithm>
#include <cstdint>

#include "base/status.h"

namespace millrace {

// While one lives, its thread takes only what is at hand: whoever would have to wait for what is
// out of its reach refuses instead. Whoever made it then does the same again on a thread that may
// wait.
//
// For a thread that serves many, where what is asked for is nearly always near. They nest, and then
// the shortest reach counts.
class AtHandOnly {
 public:
  // Ordered: each has what the ones before it have.
  enum class Reach : std::uint8_t {
    kMemory,
    kDisk,  // And what is on this machine's disks.
  };

  explicit AtHandOnly(Reach reach)
      : reach_(innermost == nullptr ? reach : std::min(reach, innermost->reach_)),
        outer_(innermost) {
    innermost = this;
  }
  ~AtHandOnly() { innermost = outer_; }
  AtHandOnly(const AtHandOnly&) = delete;
  AtHandOnly& operator=(const AtHandOnly&) = delete;

  // Something was not at hand: whatever came of it counts for nothing.
  bool refused() const { return refused_; }

  // One lives on the calling thread.
  static bool is_in_force() { return innermost != nullptr; }

  // To be asked before waiting for a store, or for anybody else who may never answer: kUnavailable
  // when the thread must not.
  static Status may_wait() {
    if (innermost == nullptr) return {};
    innermost->refused_ = true;
    return not_at_hand();
  }
  // To be asked before waiting for a disk of this machine alone.
  static Status may_wait_for_disk() {
    return innermost != nullptr && innermost->reach_ == Reach::kMemory ? may_wait() : Status();
  }
  // To be asked before noting anything: kUnavailable when all will be done again, since something
  // was refused.
  static Status may_note() {
    return innermost != nullptr && innermost->refused_ ? not_at_hand() : Status();
  }

 private:
  static Status not_at_hand() { return {StatusCode::kUnavailable, "it is not at hand"}; }

  static inline thread_local AtHandOnly* innermost = nullptr;

  const Reach reach_;
  AtHandOnly* const outer_;
  bool refused_ = false;
};

}  // namespace millrace
