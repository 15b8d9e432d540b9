// How long a reader waits when the gateway is killed and started again: the longest time between
// two answers to a client that reads all the time, and connects again as soon as it can.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/served_tree.h"
#include "tests/frontends/nfs4/nfs_client_session.h"

namespace millrace::bench {
namespace {

using millrace::testing::NfsAnswer;
using millrace::testing::NfsConnection;
using millrace::testing::NfsSession;
using StallClock = std::chrono::steady_clock;

constexpr std::uint64_t kFileBytes = 64 * kMiB;
constexpr double kStallSecondsMax = 2;
constexpr auto kReconnectPause = std::chrono::milliseconds(2);
// Before the kill, and after the restart.
constexpr std::uint64_t kAnswersAround = 200;

// Each is a client of its own, which has nothing to reclaim.
std::atomic<int> clients = 0;

// Reads in a thread of its own, from construction to the end.
class SteadyReader {
 public:
  explicit SteadyReader(const NfsTarget& target) : target_(target), thread_([this] { run(); }) {}
  ~SteadyReader() {
    stopping_ = true;
    thread_.join();
  }

  // Waits for so many more answers.
  void await(std::uint64_t answers) const {
    const std::uint64_t wanted = answers_ + answers;
    while (answers_ < wanted)
      std::this_thread::sleep_for(kReconnectPause);
  }
  double longest_gap_s() const { return longest_gap_s_; }

 private:
  void run() {
    while (!stopping_) {
      try {
        read_until_lost();
      } catch (const std::runtime_error&) {
        std::this_thread::sleep_for(kReconnectPause);
      }
    }
  }
  void read_until_lost() {
    NfsConnection connection(target_.port);
    NfsSession session(connection, {.owner = fmt::format("bench restart {}", ++clients)});
    // The handle of before: a client does not look it up again.
    if (handle_.empty()) handle_ = session.lookup(target_.directory + "/large");
    while (!stopping_) {
      const std::uint64_t place = answers_ % (kFileBytes / kMiB) * kMiB;
      NfsAnswer answer = session.run(session.call().put_fh(handle_).read({}, place, kMiB));
      answer.good(NfsOperation::kPutFh);
      answer.good(NfsOperation::kRead);
      note_answer();
    }
  }
  void note_answer() {
    const auto now = StallClock::now();
    if (answers_ > 0) {
      const double gap_s = std::chrono::duration<double>(now - last_answer_).count();
      longest_gap_s_ = std::max(longest_gap_s_.load(), gap_s);
    }
    last_answer_ = now;
    ++answers_;
  }

  const NfsTarget target_;
  std::string handle_;
  StallClock::time_point last_answer_;
  std::atomic<std::uint64_t> answers_ = 0;
  std::atomic<double> longest_gap_s_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

double stall_s(ServedTree& tree) {
  const SteadyReader reader(tree.target());
  reader.await(kAnswersAround);
  tree.gateway().kill();
  tree.gateway().start();
  reader.await(kAnswersAround);
  return reader.longest_gap_s();
}

void run(const BenchOptions& options) {
  ServedTree tree([](const std::string& root) { write_generated(root + "/large", kFileBytes); });
  Comparison comparison;
  std::vector<double> stalls;
  for (int round = 0; round < options.rounds; ++round) {
    stalls.push_back(stall_s(tree));
    comparison.ceiling_rate = std::max(comparison.ceiling_rate, 1 / stalls.back());
    comparison.rounds.push_back({.ours = {.amount = 1, .seconds = stalls.back()},
                                 .peer = {.amount = 1, .seconds = kStallSecondsMax},
                                 .peer_name = "asked"});
  }
  const double worst = std::ranges::max(stalls);
  report({.bench = "nfs_restart",
          .value = worst,
          .unit = "s, the worst",
          .ratio = worst / kStallSecondsMax,
          .against = fmt::format("{} s", kStallSecondsMax),
          .goal = Goal{Goal::Kind::kAtMost, 1},
          .cpu_s = 0,
          .rss_mib = 0,
          .rss_mib_max = 0},
         comparison, {"restarts/s", 1, "CPU s/restart", 1});
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.rounds = 5});
  return run_bench("nfs_restart", [&] { run(options); });
}
