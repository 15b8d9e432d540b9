#include "frontends/fuse/fuse_attempt.h"

#include <cassert>
#include <utility>

namespace millrace {

FuseAtHandAttempt::FuseAtHandAttempt(const FuseCall& call)
    : connection_(call.connection()), unique_(call.unique()) {
  assert(current == nullptr);
  current = this;
}

FuseAtHandAttempt::~FuseAtHandAttempt() { current = nullptr; }

bool FuseAtHandAttempt::take_back(FuseCall& call) {
  if (current == nullptr || !current->at_hand_.refused()) return false;
  if (&call.connection() != &current->connection_ || call.unique() != current->unique_) {
    return false;
  }
  current->handed_back_.emplace(std::move(call));
  return true;
}

}  // namespace millrace
