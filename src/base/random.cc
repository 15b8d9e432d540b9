#include "base/random.h"

#include <pthread.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

namespace millrace {

namespace {

// Counts forks in the child, so that threads there throw away numbers that the parent has too.
std::atomic<std::uint64_t> fork_count = 0;

// Numbers that the kernel gave to one thread and that nobody has seen yet.
class KernelNumbers {
 public:
  std::uint64_t next() {
    const std::uint64_t forks = fork_count.load(std::memory_order_relaxed);
    if (used_ == numbers_.size() || forks_ != forks) {
      refill();
      forks_ = forks;
    }
    return numbers_[used_++];
  }

 private:
  // The kernel gives up to 256 bytes at once and without interruption.
  static constexpr std::size_t kNumbers = 256 / sizeof(std::uint64_t);

  void refill() {
    ssize_t got;
    do {
      got = getrandom(numbers_.data(), sizeof(numbers_), 0);
    } while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(sizeof(numbers_))) {
      // Going on with predictable tokens would be worse than stopping.
      std::fputs("millrace: the kernel gives no random numbers (getrandom failed)\n", stderr);
      std::abort();
    }
    used_ = 0;
  }

  std::array<std::uint64_t, kNumbers> numbers_;
  std::size_t used_ = kNumbers;
  std::uint64_t forks_ = 0;
};

class SystemRandom final : public Random {
 public:
  SystemRandom() {
    pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
  }
  std::uint64_t next() override {
    thread_local KernelNumbers numbers;
    return numbers.next();
  }
};

}  // namespace

double Random::uniform() {
  // 53 bits are what a double holds exactly.
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

std::string Random::token() {
  const std::uint64_t high = next();
  const std::uint64_t low = next();
  return fmt::format("{:016x}{:016x}", high, low);
}

Random& system_random() {
  static auto* const random = new SystemRandom;
  return *random;
}

// SplitMix64 (Steele, Lea, Flood 2014): its state is a counter, so threads can share it without a
// lock.
std::uint64_t SeededRandom::next() {
  constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;
  std::uint64_t z = state_.fetch_add(kGamma, std::memory_order_relaxed) + kGamma;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace millrace
