#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace millrace {

// The seam to randomness: jitter, nonces, request ids. Simulations pass a seeded one.
// Implementations are safe from any thread.
class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;
  // Uniform in [0, 1).
  double uniform();
  // 128 bits as 32 hexadecimal digits: unique names and tokens.
  std::string token();
};

// From the kernel's generator: unpredictable, for tokens and jitter alike. Cheap: a thread asks the
// kernel for many numbers at once. A forked child does not repeat its parent's numbers.
Random& system_random();

// The same numbers for the same seed, on every machine. Threads that share one get each number of
// the sequence once.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override;

 private:
  std::atomic<std::uint64_t> state_;
};

}  // namespace millrace
