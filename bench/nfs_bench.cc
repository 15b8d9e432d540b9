// Our NFS server against nfs-ganesha with its VFS back end on the same disk, by the same client of
// ours over one connection: warm reads of 1 MiB and 4 KiB, small files opened, read and closed
// without delegations, and a directory listed with attributes. Processor time is the server's.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "base/bytes.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_store.h"
#include "bench/generated_store.h"
#include "bench/nfs_load.h"
#include "bench/own_network.h"
#include "bench/served_tree.h"
#include "platform/file.h"
#include "tests/servers/ganesha_server.h"

namespace millrace::bench {
namespace {

using millrace::testing::GaneshaServer;

constexpr std::uint64_t kLargeBytes = 256 * kMiB;
constexpr std::uint64_t kSmallFiles = 2000;
constexpr std::uint64_t kSmallFileBytes = 3000;
constexpr std::uint32_t kLargeDepth = 8;
constexpr std::uint32_t kSmallDepth = 32;

// What both serve, on the disk.
void write_tree(const std::string& root, std::uint64_t entries) {
  std::filesystem::create_directories(root + "/small");
  std::filesystem::create_directories(root + "/many");
  write_generated(root + "/large", kLargeBytes);
  Buffer piece = Buffer::allocate(kSmallFileBytes);
  GeneratedStore::generate(0, piece.bytes());
  for (std::uint64_t i = 0; i < kSmallFiles; ++i) {
    const File small =
        require(File::open(fmt::format("{}/small/{}", root, i), O_RDWR | O_CREAT | O_TRUNC));
    require(small.write_at(0, piece.bytes()));
  }
  for (std::uint64_t i = 0; i < entries; ++i)
    require(File::open(fmt::format("{}/many/{:08}.jpg", root, i), O_WRONLY | O_CREAT));
}

enum class Charge { kTime, kProcessor };

struct NfsRace {
  std::string name;
  std::function<RunFigures(const NfsTarget&)> run;
  Charge charge;
  double goal;
  Unit unit;
};

void race(const NfsRace& race, const NfsTarget& ours, const NfsTarget& peer,
          const BenchOptions& options) {
  if (!options.wants_part(race.name)) return;
  const Contender us{.name = "nfs_" + race.name, .run = [&] { return race.run(ours); }};
  if (options.ours_only) return run_alone(us, options.rounds, race.unit);
  const Contender them{.name = "nfs-ganesha", .run = [&] { return race.run(peer); }};
  const Comparison comparison = compare(us, {them}, options.rounds);
  const bool by_time = race.charge == Charge::kTime;
  report({.bench = us.name,
          .value = comparison.rate() / race.unit.per_rate,
          .unit = race.unit.rate,
          .ratio = by_time ? comparison.rate_ratio() : 1 / comparison.cpu_ratio(),
          .against = by_time ? "nfs-ganesha" : "nfs-ganesha, per CPU second",
          .goal = Goal{Goal::Kind::kAtLeast, race.goal},
          .cpu_s = comparison.cpu_s(),
          .rss_mib = 0,
          .rss_mib_max = 0},
         comparison, race.unit);
}

void race_sendfile(const NfsTarget& ours, const std::string& file, const BenchOptions& options) {
  if (options.ours_only || !options.wants_part("sendfile")) return;
  const Contender us{.name = "nfs_read_1m_sendfile", .run = [&] {
                       return nfs_read_load(ours, "large", kLargeBytes, kMiB, kLargeDepth,
                                            options.seconds);
                     }};
  const Contender plain{.name = "sendfile", .run = [&] {
                          return sendfile_load(file, kLargeBytes, kLargeDepth, options.seconds);
                        }};
  const Comparison comparison = compare(us, {plain}, options.rounds);
  report({.bench = us.name,
          .value = comparison.rate() / bytes_unit().per_rate,
          .unit = bytes_unit().rate,
          .ratio = comparison.rate_ratio(),
          .against = "plain sendfile",
          .goal = Goal{Goal::Kind::kAtLeast, 0.8},
          .cpu_s = comparison.cpu_s(),
          .rss_mib = 0,
          .rss_mib_max = 0},
         comparison, bytes_unit());
}

void run(const BenchOptions& options) {
  if (::geteuid() != 0) {
    give_up({StatusCode::kPermissionDenied, "only root can run nfs-ganesha's VFS back end"});
  }
  enter_own_network(options.congestion);
  fmt::print("TCP paces itself by {}\n", congestion_control());
  const ServedTree tree([&](const std::string& root) {
    write_tree(root, options.wants_part("list") ? options.files : 0);
  });
  const GaneshaServer ganesha(tree.root());
  const NfsTarget ours = tree.target();
  const NfsTarget peer{ganesha.port(), ganesha.pid(), "/data"};
  // As a first epoch does. Whoever reads a file first decides in how large pieces the kernel keeps
  // it: read at random it is in single pages from then on, which cost twice as much to send.
  for (const NfsTarget& target : {ours, peer})
    nfs_read_through(target, "large");

  const auto reads = [&](std::uint32_t bytes, std::uint32_t depth) {
    return [&options, bytes, depth](const NfsTarget& target) {
      return nfs_read_load(target, "large", kLargeBytes, bytes, depth, options.seconds);
    };
  };
  race({"read_1m", reads(kMiB, kLargeDepth), Charge::kProcessor, 3, bytes_unit()}, ours, peer,
       options);
  race({"read_4k", reads(4096, kSmallDepth), Charge::kProcessor, 3, requests_unit()}, ours, peer,
       options);
  race({"small_files",
        [&](const NfsTarget& target) {
          return nfs_small_files_load(target, "small", kSmallFiles, kSmallDepth, options.seconds);
        },
        Charge::kTime, 3, requests_unit()},
       ours, peer, options);
  race({"list", [](const NfsTarget& target) { return nfs_list_load(target, "many"); },
        Charge::kTime, 10, requests_unit()},
       ours, peer, options);
  race_sendfile(ours, tree.root() + "/large", options);
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options =
      parse_options(argc, argv,
                    {.seconds = 2,
                     .rounds = 5,
                     .files = 1'000'000,
                     // What Linux has by default, whatever this machine is set to.
                     .congestion = "cubic",
                     .parts = {"read_1m", "read_4k", "small_files", "list", "sendfile"}});
  return run_bench("nfs", [&] { run(options); });
}
