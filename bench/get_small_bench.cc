// GETs of whole 4 KiB objects, 256 in flight, against wrk on the same objects.

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "bench/bench_objects.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_store.h"
#include "bench/client_usage.h"
#include "bench/closed_loop.h"
#include "bench/scratch_directory.h"
#include "bench/wrk_peer.h"
#include "tests/servers/ceph_server.h"
#include "tests/servers/nginx_server.h"

namespace millrace::bench {
namespace {

constexpr std::size_t kObjects = 2000;
constexpr std::uint64_t kObjectBytes = 4 * kKiB;
constexpr std::size_t kInFlight = 256;
// Twice what is in flight: an answer may still be held while its successor is asked for.
constexpr std::uint64_t kPoolBytes = 2 * kInFlight * kObjectBytes;
constexpr double kRssMibMax = 100;
const std::string kBucket = "small";

LoadPlan load_plan(const BenchObjects& objects) {
  LoadPlan load;
  load.in_flight = kInFlight;
  load.request = [&objects](std::uint64_t number) {
    return GetRequest{.key = ObjectKey(objects.keys[number % objects.keys.size()]),
                      .range = std::nullopt,
                      .identity = std::nullopt,
                      .bytes_max = kObjectBytes};
  };
  return load;
}

// Every object once, outside the timed runs, to see that the bytes are right.
void check_content(const BenchTarget& target, const BenchObjects& objects,
                   const BenchOptions& options) {
  LoadPlan load = load_plan(objects);
  load.requests_max = objects.keys.size();
  load.check = [&objects](std::uint64_t number, const GetResult& result) -> Status {
    if (crc32c(result.data.bytes()) == objects.piece_crcs[number]) return {};
    return {StatusCode::kCorruption, fmt::format("object {} has wrong bytes", number)};
  };
  BenchStore client(target, options.loops, kPoolBytes);
  (void)run_closed_loop(client.store(), load);
}

RunFigures run_ours(const BenchTarget& target, const BenchObjects& objects,
                    const BenchOptions& options) {
  LoadPlan load = load_plan(objects);
  load.seconds_max = options.seconds;
  BenchStore client(target, options.loops, kPoolBytes);
  const ClientUsage usage;
  const LoadResult done = run_closed_loop(client.store(), load);
  return usage.figures(static_cast<double>(done.requests));
}

void measure(const BenchTarget& target, const BenchObjects& objects, double goal,
             const BenchOptions& options, const std::string& scratch) {
  check_content(target, objects, options);
  const Contender ours{.name = "get_small_" + target.server,
                       .run = [&] { return run_ours(target, objects, options); }};
  const Unit unit = requests_unit();
  if (options.ours_only) return run_alone(ours, options.rounds, unit);
  std::vector<Contender> peers;
  for (const int threads : {1, 2}) {
    const WrkForm form{.threads = threads, .connections = kInFlight, .seconds = options.seconds};
    peers.push_back(wrk_contender(target, objects, form, scratch));
  }
  const Comparison comparison = compare(ours, std::move(peers), options.rounds);
  report({.bench = ours.name,
          .value = comparison.rate() / unit.per_rate,
          .unit = unit.rate,
          .ratio = comparison.rate_ratio(),
          .against = "the best wrk",
          .goal = Goal{Goal::Kind::kAtLeast, goal},
          .cpu_s = comparison.cpu_s(),
          .rss_mib = comparison.rss_mib_max(),
          .rss_mib_max = kRssMibMax},
         comparison, unit);
}

void run(const BenchOptions& options) {
  const ScratchDirectory scratch;
  const std::string files = scratch.path() + "/" + kBucket;
  std::filesystem::create_directory(files);
  const BenchObjects objects = write_files(files, kObjects, kObjectBytes, kObjectBytes);
  if (options.wants("nginx")) {
    const millrace::testing::NginxServer nginx(scratch.path());
    measure({.server = "nginx", .endpoint = nginx.endpoint(), .bucket = kBucket}, objects, 0.5,
            options, scratch.path());
  }
  if (options.wants("ceph")) {
    millrace::testing::CephServer ceph;
    ceph.create_bucket(kBucket);
    const BenchTarget target = target_of(ceph, kBucket);
    upload_small(target, objects, files);
    measure(target, objects, 0.9, options, scratch.path());
  }
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.seconds = 2, .rounds = 5});
  return run_bench("get_small", [&] { run(options); });
}
