#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace millrace::bench {

// Reads all the time, in a thread of its own, from construction to the end, and notes how long it
// had to wait.
class SteadyReader {
 public:
  // Makes the read of this number. Throws std::runtime_error when it gets no answer: then it is
  // made again, a moment later.
  using ReadNext = std::function<void(std::uint64_t number)>;
  explicit SteadyReader(ReadNext read_next);
  ~SteadyReader();
  SteadyReader(const SteadyReader&) = delete;
  SteadyReader& operator=(const SteadyReader&) = delete;

  // Waits for so many more answers.
  void await(std::uint64_t answers) const;
  // Between two answers.
  double longest_gap_s() const { return longest_gap_s_; }

 private:
  void run();
  void note_answer();

  const ReadNext read_next_;
  std::chrono::steady_clock::time_point last_answer_;
  std::atomic<std::uint64_t> answers_ = 0;
  std::atomic<double> longest_gap_s_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

// How long such a reader has to wait when `restart` kills whoever serves it, and that comes back:
// `rounds` times, against `asked_s`. Reports the worst.
void report_stalls(const std::string& name, int rounds, double asked_s,
                   const std::function<SteadyReader::ReadNext()>& reads,
                   const std::function<void()>& restart);

}  // namespace millrace::bench
