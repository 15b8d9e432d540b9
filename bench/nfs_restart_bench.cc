// How long a reader waits when the gateway is killed and started again: the longest time between
// two answers to a client that reads all the time, and connects again as soon as it can.

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "base/bytes.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/served_tree.h"
#include "bench/steady_reader.h"
#include "tests/frontends/nfs4/nfs_client_session.h"

namespace millrace::bench {
namespace {

using millrace::testing::NfsAnswer;
using millrace::testing::NfsConnection;
using millrace::testing::NfsSession;

constexpr std::uint64_t kFileBytes = 64 * kMiB;
constexpr double kStallSecondsMax = 2;

// Each is a client of its own, which has nothing to reclaim.
std::atomic<int> clients = 0;

class ReconnectingClient {
 public:
  explicit ReconnectingClient(const NfsTarget& target) : target_(target) {}

  void read(std::uint64_t number) {
    try {
      if (!connected_) connected_ = std::make_unique<Connected>(target_.port);
      NfsSession& session = connected_->session;
      // The handle of before: a client does not look it up again.
      if (handle_.empty()) handle_ = session.lookup(target_.directory + "/large");
      const std::uint64_t place = number % (kFileBytes / kMiB) * kMiB;
      NfsAnswer answer = session.run(session.call().put_fh(handle_).read({}, place, kMiB));
      answer.good(NfsOperation::kPutFh);
      answer.good(NfsOperation::kRead);
    } catch (const std::runtime_error&) {
      connected_.reset();
      throw;
    }
  }

 private:
  struct Connected {
    explicit Connected(std::uint16_t port) : connection(port) {}
    NfsConnection connection;
    NfsSession session{connection, {.owner = fmt::format("bench restart {}", ++clients)}};
  };

  const NfsTarget target_;
  std::unique_ptr<Connected> connected_;
  std::string handle_;
};

void run(const BenchOptions& options) {
  ServedTree tree([](const std::string& root) { write_generated(root + "/large", kFileBytes); });
  const auto reads = [&tree]() -> SteadyReader::ReadNext {
    return [client = std::make_shared<ReconnectingClient>(tree.target())](std::uint64_t number) {
      client->read(number);
    };
  };
  report_stalls("nfs_restart", options.rounds, kStallSecondsMax, reads, [&tree] {
    tree.gateway().kill();
    tree.gateway().start();
  });
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.rounds = 5});
  return run_bench("nfs_restart", [&] { run(options); });
}
