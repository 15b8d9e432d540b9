#include "bench/steady_reader.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_report.h"

namespace millrace::bench {
namespace {

constexpr auto kRetryPause = std::chrono::milliseconds(2);
// Before the kill, and after the restart.
constexpr std::uint64_t kAnswersAround = 200;

}  // namespace

SteadyReader::SteadyReader(ReadNext read_next)
    : read_next_(std::move(read_next)), thread_([this] { run(); }) {}

SteadyReader::~SteadyReader() {
  stopping_ = true;
  thread_.join();
}

void SteadyReader::await(std::uint64_t answers) const {
  const std::uint64_t wanted = answers_ + answers;
  while (answers_ < wanted)
    std::this_thread::sleep_for(kRetryPause);
}

void SteadyReader::run() {
  while (!stopping_) {
    try {
      read_next_(answers_);
      note_answer();
    } catch (const std::runtime_error&) {
      std::this_thread::sleep_for(kRetryPause);
    }
  }
}

void SteadyReader::note_answer() {
  const auto now = std::chrono::steady_clock::now();
  if (answers_ > 0) {
    const double gap_s = std::chrono::duration<double>(now - last_answer_).count();
    longest_gap_s_ = std::max(longest_gap_s_.load(), gap_s);
  }
  last_answer_ = now;
  ++answers_;
}

void report_stalls(const std::string& name, int rounds, double asked_s,
                   const std::function<SteadyReader::ReadNext()>& reads,
                   const std::function<void()>& restart) {
  Comparison comparison;
  double worst_s = 0;
  for (int round = 0; round < rounds; ++round) {
    const SteadyReader reader(reads());
    reader.await(kAnswersAround);
    restart();
    reader.await(kAnswersAround);
    const double stall_s = reader.longest_gap_s();
    worst_s = std::max(worst_s, stall_s);
    comparison.ceiling_rate = std::max(comparison.ceiling_rate, 1 / stall_s);
    comparison.rounds.push_back({.ours = {.amount = 1, .seconds = stall_s},
                                 .peer = {.amount = 1, .seconds = asked_s},
                                 .peer_name = "asked"});
  }
  report({.bench = name,
          .value = worst_s,
          .unit = "s, the worst",
          .ratio = worst_s / asked_s,
          .against = fmt::format("{} s", asked_s),
          .goal = Goal{Goal::Kind::kAtMost, 1},
          .cpu_s = 0,
          .rss_mib = 0,
          .rss_mib_max = 0},
         comparison, {"restarts/s", 1, "CPU s/restart", 1});
}

}  // namespace millrace::bench
