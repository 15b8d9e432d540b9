#include "objectstore/retry_budget.h"

#include <algorithm>
#include <cassert>

namespace millrace {

RetryBudget::RetryBudget(std::int64_t capacity, std::int64_t cost)
    : capacity_(capacity), cost_(cost), tokens_(capacity) {
  assert(capacity >= 0 && cost > 0);
}

bool RetryBudget::try_spend() {
  std::int64_t have = tokens_.load(std::memory_order_relaxed);
  do {
    if (have < cost_) return false;
  } while (!tokens_.compare_exchange_weak(have, have - cost_, std::memory_order_relaxed));
  return true;
}

void RetryBudget::on_success(bool after_retry) {
  const std::int64_t refill = after_retry ? cost_ : 1;
  std::int64_t have = tokens_.load(std::memory_order_relaxed);
  // A full bucket is the common case and stays a read: the line is shared by all threads.
  while (have < capacity_) {
    const std::int64_t next = std::min(capacity_, have + refill);
    if (tokens_.compare_exchange_weak(have, next, std::memory_order_relaxed)) return;
  }
}

}  // namespace millrace
