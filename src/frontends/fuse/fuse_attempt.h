#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/at_hand.h"
#include "frontends/fuse/fuse_connection.h"

namespace millrace {

// While one lives, its thread tries to answer a call with what this machine has. If that does not
// do, the call is not answered but handed back, for another try or for a thread that may wait.
//
// Of the one thread that made it, where answers are written at once (FuseReplies::TakesRequests).
class FuseAtHandAttempt {
 public:
  explicit FuseAtHandAttempt(const FuseCall& call);
  ~FuseAtHandAttempt();
  FuseAtHandAttempt(const FuseAtHandAttempt&) = delete;
  FuseAtHandAttempt& operator=(const FuseAtHandAttempt&) = delete;

  // After the operation: nothing when it was answered, or will be.
  std::optional<FuseCall> handed_back() { return std::move(handed_back_); }

  // For a call that is about to be answered: true when it was handed back.
  static bool take_back(FuseCall& call);

 private:
  static inline thread_local FuseAtHandAttempt* current = nullptr;

  // Of the call: the thread may answer others meanwhile, and of other mounts.
  const FuseConnection& connection_;
  const std::uint64_t unique_;
  const AtHandOnly at_hand_{AtHandOnly::Reach::kDisk};
  std::optional<FuseCall> handed_back_;
};

}  // namespace millrace
