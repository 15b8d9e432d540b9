#pragma once

#include <atomic>
#include <cstdint>

namespace millrace {

// What one store's retries and hedges may cost together, so that a storm of failures is not
// multiplied by the attempts of each request.
//
// Invariants:
//  1. 0 <= tokens() <= capacity.
//  2. A retry or hedge takes its cost first. A retry that succeeds returns it; a request that
//  succeeds
//     at once returns one token. So a store with scattered failures stays full, and one that fails
//     everything is asked capacity / cost more times in all.
//
// Safe from any thread, without locks.
class RetryBudget {
 public:
  RetryBudget(std::int64_t capacity, std::int64_t cost);

  // Takes the cost of one retry or hedge, or returns false and takes nothing.
  [[nodiscard]] bool try_spend();
  // An operation succeeded, by a retry or hedge that was paid for or at once.
  void on_success(bool after_retry);

  std::int64_t tokens() const { return tokens_.load(std::memory_order_relaxed); }

 private:
  const std::int64_t capacity_;
  const std::int64_t cost_;
  std::atomic<std::int64_t> tokens_;
};

}  // namespace millrace
