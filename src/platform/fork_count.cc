#include "platform/fork_count.h"

#include <pthread.h>

#include <atomic>

namespace millrace {
namespace {

std::atomic<std::uint64_t> forks = 0;

// Before the fork, so that the child begins with it.
void count_fork() { forks.fetch_add(1); }

}  // namespace

std::uint64_t fork_count() {
  [[maybe_unused]] static const int registered = ::pthread_atfork(&count_fork, nullptr, nullptr);
  return forks.load();
}

}  // namespace millrace
