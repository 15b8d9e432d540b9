#pragma once

#include <atomic>
#include <cstddef>

namespace millrace {

// The number of the calling thread, counted from 0 as threads first ask. For those who keep
// something several times over, so that threads seldom touch the same memory.
inline std::size_t thread_stripe() {
  static std::atomic<std::size_t> threads = 0;
  thread_local const std::size_t stripe = threads.fetch_add(1, std::memory_order_relaxed);
  return stripe;
}

}  // namespace millrace
