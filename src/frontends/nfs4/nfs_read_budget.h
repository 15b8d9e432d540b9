#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/executor.h"
#include "base/mutex.h"
#include "frontends/nfs4/nfs_types.h"

namespace millrace {

// The memory that the answers to READs take until they are sent, of all clients together.
//
// Invariants:
//  1. What is given out is at most the budget, and of one connection one answer, or half of what
//     the others leave: a few that do not take their answers cannot stop the others.
//  2. Among those whose connection has room, first come is first served.
//
// All methods are safe from any thread. Shares may outlive it.
class NfsReadBudget {
  struct State;

 public:
  // Returns what it holds when the last copy goes.
  using Share = std::shared_ptr<const void>;
  using Then = std::move_only_function<void(Share)>;

  explicit NfsReadBudget(std::uint64_t bytes_max);

  // Calls `then` at once when there is room, and else later on the executor, which outlives the
  // wait. `bytes` is at most half of the budget.
  void reserve(NfsConnectionId connection, std::uint64_t bytes, Executor& executor, Then then);

  std::uint64_t bytes_in_use() const;
  std::size_t waiting() const;

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace millrace
