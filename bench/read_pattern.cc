#include "bench/read_pattern.h"

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "bench/client_usage.h"

namespace millrace::bench {
namespace {

constexpr unsigned kReaders = 4;

// Where a thread reads next.
class Places {
 public:
  Places(const ReadPattern& pattern, std::uint64_t file_bytes, unsigned thread)
      : pattern_(pattern),
        file_bytes_(file_bytes),
        random_(thread),
        next_(thread * (file_bytes / kReaders)) {}

  std::uint64_t next() {
    if (pattern_.sequential) {
      const std::uint64_t at = next_;
      next_ = (next_ + pattern_.read_bytes) % file_bytes_;
      return at;
    }
    return random_() % (file_bytes_ / pattern_.read_bytes) * pattern_.read_bytes;
  }

 private:
  const ReadPattern& pattern_;
  const std::uint64_t file_bytes_;
  std::mt19937_64 random_;
  std::uint64_t next_;
};

}  // namespace

RunFigures run_readers(const ReadPattern& pattern, std::uint64_t file_bytes, double seconds,
                       const std::function<PlaceReader()>& make_reader) {
  std::atomic<bool> over = false;
  std::atomic<std::uint64_t> reads = 0;
  const ClientUsage usage;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kReaders; ++t) {
    threads.emplace_back([&, t] {
      const PlaceReader read = make_reader();
      Places places(pattern, file_bytes, t);
      std::uint64_t done = 0;
      for (; !over.load(std::memory_order_relaxed); ++done)
        read(places.next());
      reads += done;
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  over = true;
  for (std::thread& thread : threads)
    thread.join();
  const double amount = static_cast<double>(reads.load());
  return usage.figures(pattern.count_requests ? amount
                                              : amount * static_cast<double>(pattern.read_bytes));
}

}  // namespace millrace::bench
