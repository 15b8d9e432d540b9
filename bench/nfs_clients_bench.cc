// What memory the server takes while many clients read at once: each with a connection and a
// session of its own, and all with reads under way. Every other one reads 1 MiB, which the kernel
// sends from its own memory; the others 32 KiB four times over, which pass through ours. More would
// wait in the kernel for its limit on what TCP may hold.

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/random.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/process_usage.h"
#include "bench/served_tree.h"
#include "tests/frontends/nfs4/nfs_client_session.h"

namespace millrace::bench {
namespace {

using millrace::testing::NfsConnection;
using millrace::testing::NfsSession;

constexpr std::uint64_t kFileBytes = 256 * kMiB;
constexpr std::uint64_t kClients = 1000;
constexpr std::uint32_t kSmallReads = 4;
constexpr std::uint32_t kSmallReadBytes = 32 * kKiB;
constexpr double kServerRssMibMax = 512;

class ReadingClient {
 public:
  ReadingClient(const NfsTarget& target, std::uint64_t number)
      : connection_(target.port, "127.0.0.1", std::chrono::minutes(5)),
        session_(connection_,
                 {.owner = fmt::format("bench client {}", number), .slots = kSmallReads}),
        handle_(session_.lookup(target.directory + "/large")),
        bytes_(number % 2 == 0 ? kMiB : kSmallReadBytes),
        reads_(number % 2 == 0 ? 1 : kSmallReads),
        random_(number + 1) {}

  void ask() {
    for (std::uint32_t slot = 0; slot < reads_; ++slot) {
      const std::uint64_t place = random_.next() % (kFileBytes / bytes_) * bytes_;
      session_.send(slot, session_.call(slot).put_fh(handle_).read({}, place, bytes_));
    }
    connection_.flush();
  }
  // What was asked for. Returns its bytes.
  std::uint64_t take() {
    for (std::uint32_t i = 0; i < reads_; ++i) {
      auto [slot, answer] = session_.receive();
      answer.good(NfsOperation::kPutFh);
      XdrReader& reader = answer.good(NfsOperation::kRead);
      reader.boolean();
      if (reader.u32() != bytes_) throw std::runtime_error("a read was short");
    }
    return std::uint64_t{reads_} * bytes_;
  }

 private:
  NfsConnection connection_;
  NfsSession session_;
  const std::string handle_;
  const std::uint32_t bytes_;
  const std::uint32_t reads_;
  SeededRandom random_;
};

void run(const BenchOptions& options) {
  const ServedTree tree(
      [](const std::string& root) { write_generated(root + "/large", kFileBytes); });
  const NfsTarget target = tree.target();
  std::vector<std::unique_ptr<ReadingClient>> clients;
  for (std::uint64_t i = 0; i < kClients; ++i)
    clients.push_back(std::make_unique<ReadingClient>(target, i));
  const double idle_mib = process_rss_mib_max(target.pid);

  Comparison comparison;
  for (int round = 0; round < options.rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const double cpu_before_s = process_cpu_s(target.pid);
    std::uint64_t bytes = 0;
    for (const auto& client : clients)
      client->ask();
    for (const auto& client : clients)
      bytes += client->take();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    const RunFigures ours{.amount = static_cast<double>(bytes),
                          .seconds = taken.count(),
                          .cpu_s = process_cpu_s(target.pid) - cpu_before_s,
                          .rss_mib = process_rss_mib_max(target.pid)};
    comparison.ceiling_rate = std::max(comparison.ceiling_rate, ours.rate());
    comparison.rounds.push_back({.ours = ours, .peer = ours, .peer_name = "itself"});
  }
  const double rss_mib = process_rss_mib_max(target.pid);
  fmt::print("{} clients: {:.0f} MiB before they read\n", clients.size(), idle_mib);
  report({.bench = "nfs_clients",
          .value = rss_mib,
          .unit = fmt::format("MiB, {} clients", clients.size()),
          .ratio = rss_mib / kServerRssMibMax,
          .against = fmt::format("{} MiB", kServerRssMibMax),
          .goal = Goal{Goal::Kind::kAtMost, 1},
          .cpu_s = comparison.cpu_s(),
          .rss_mib = rss_mib,
          .rss_mib_max = kServerRssMibMax},
         comparison, bytes_unit());
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.rounds = 5});
  return run_bench("nfs_clients", [&] { run(options); });
}
