// A cold object read in sequence by one thread through the cache, against the best that parallel
// curl gets from the same server; and how long the first bytes take.
//
// The slow store is nginx behind a proxy that adds 20 ms to each request and gives a connection
// 4 MiB/s, as a distant object store does: far below what the processors can move. There the same
// read also runs without a ceiling on memory, to see what the ceiling costs.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/checksum.h"
#include "bench/bench_objects.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_store.h"
#include "bench/cache_bench_setup.h"
#include "bench/client_usage.h"
#include "bench/curl_peer.h"
#include "bench/proxy_process.h"
#include "bench/scratch_directory.h"
#include "platform/curl_http_client.h"
#include "tests/servers/ceph_server.h"
#include "tests/servers/nginx_server.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kBigBytes = 4 * kGiB;
constexpr std::uint64_t kReadBytes = kMiB;
constexpr std::size_t kPeersInFlight = 64;
constexpr double kColdRssMibMax = 512;
constexpr std::uint64_t kNoCeilingBytes = 1024 * kGiB;
constexpr int kCeilingRounds = 2;
const std::string kColdBucket = "cold";
const std::string kPiecesBucket = "pieces";  // For curl, which fetches whole objects side by side.

// What a timed run reads: the object from its beginning, as many bytes as the peers fetch.
struct ColdRun {
  BenchTarget target;
  std::string key;
  ObjectIdentity identity;
  std::uint64_t bytes = 0;
  std::string scratch;
  std::uint64_t pool_bytes = CacheBenchOptions().pool_bytes;
};

// A cache that holds nothing yet, over its own client.
class ColdCache {
 public:
  ColdCache(const ColdRun& run, std::size_t loops)
      : directory_(ScratchDirectory::Kind::kDisk),
        setup_({.directory = directory_.path() + "/cache", .pool_bytes = run.pool_bytes}),
        store_(run.target, loops, setup_.pool()),
        object_(CacheBenchSetup::object(run.key, run.identity.value(), kBigBytes)) {
    setup_.add_store(std::shared_ptr<ObjectStore>(std::shared_ptr<void>(), &store_.store()));
  }

  ~ColdCache() { setup_.close(); }

  Slice read(ByteRange range) { return read_now(setup_.cache(), run_context(), object_, range); }
  std::uint64_t fetched_bytes() { return setup_.fetched_bytes(); }
  ObjectStore& store() { return store_.store(); }

 private:
  const ScratchDirectory directory_;
  CacheBenchSetup setup_;
  BenchStore store_;
  const ObjectVersion object_;
};

RunFigures run_ours(const ColdRun& run, const BenchOptions& options, double& overfetch) {
  ColdCache cache(run, options.loops);
  const ClientUsage usage;
  for (std::uint64_t at = 0; at < run.bytes; at += kReadBytes) {
    if (cache.read({at, kReadBytes}).size() != kReadBytes) {
      give_up({StatusCode::kInternal, "short read"});
    }
  }
  const RunFigures figures = usage.figures(static_cast<double>(run.bytes));
  overfetch = static_cast<double>(cache.fetched_bytes()) / static_cast<double>(run.bytes);
  return figures;
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The first 4 KiB of a cold object, against a GET of one unit from the same store, both with a
// connection that exists.
void measure_first_byte(const ColdRun& run, const BenchOptions& options) {
  std::vector<double> ratios;
  Comparison comparison;
  for (int round = 0; round < 9; ++round) {
    ColdCache cache(run, options.loops);
    const auto get = [&](std::uint64_t at) {
      require(cache.store().get(run_context(), {.key = ObjectKey(run.key),
                                                .range = ByteRange{at, kUnitBytes},
                                                .identity = run.identity}));
    };
    get(0);
    const double direct = seconds_of([&] { get(kUnitBytes); });
    const double cold = seconds_of([&] { cache.read({kGiB, 4 * kKiB}); });
    comparison.rounds.push_back({.ours = {.amount = 1, .seconds = cold},
                                 .peer = {.amount = 1, .seconds = direct},
                                 .peer_name = "a GET"});
    ratios.push_back(cold / direct);
  }
  comparison.ceiling_rate = comparison.rate();
  report({.bench = "cache_cold_first_byte_" + run.target.server,
          .value = 1000 / comparison.rate(),
          .unit = "ms",
          .ratio = median(ratios),
          .against = "one GET of 64 KiB",
          .goal = Goal{Goal::Kind::kAtMost, 1.5},
          .cpu_s = 0,
          .rss_mib = 0},
         comparison, requests_unit());
}

void measure(const ColdRun& run, const BenchObjects& pieces, const BenchOptions& options) {
  FetchPlan plan{.target = run.target,
                 .objects = pieces,
                 .visits = run.bytes / pieces.object_bytes,
                 .in_flight = kPeersInFlight};
  plan.target.bucket = kPiecesBucket;
  double overfetch = 0;
  const Contender ours{.name = "cache_cold_" + run.target.server,
                       .run = [&] { return run_ours(run, options, overfetch); }};
  if (options.ours_only) return run_alone(ours, options.rounds, bytes_unit());
  std::vector<Contender> forms;
  for (const std::uint64_t range_bytes : {kMiB, 8 * kMiB}) {
    for (const std::size_t processes : {1, 2})
      forms.push_back(curl_contender(plan, {range_bytes, processes}, run.scratch));
  }
  const Comparison comparison = compare(ours, std::move(forms), options.rounds);
  const Unit unit = bytes_unit();
  fmt::print(
      "bytes fetched over bytes asked for: {:.3f} (what was read ahead of the end included)\n",
      overfetch);
  report({.bench = ours.name,
          .value = comparison.rate() / unit.per_rate,
          .unit = unit.rate,
          .ratio = comparison.rate_ratio(),
          .against = "the best parallel curl",
          .goal = Goal{Goal::Kind::kAtLeast, 0.9},
          .cpu_s = comparison.cpu_s(),
          .rss_mib = comparison.rss_mib_max(),
          .rss_mib_max = kColdRssMibMax},
         comparison, unit);
  measure_first_byte(run, options);
}

// What the ceiling on memory costs: the same cache with a pool that has none. Half of the object is
// many times the ceiling, and takes half of the time.
void measure_ceiling(ColdRun run, const BenchOptions& options) {
  run.bytes /= 2;
  ColdRun unbounded_run = run;
  unbounded_run.pool_bytes = kNoCeilingBytes;
  double ignored = 0;
  const Contender ours{.name = "cache_cold_ceiling_" + run.target.server,
                       .run = [&] { return run_ours(run, options, ignored); }};
  const Contender unbounded{.name = "no ceiling",
                            .run = [&] { return run_ours(unbounded_run, options, ignored); }};
  const Comparison comparison = compare(ours, {unbounded}, kCeilingRounds);
  const Unit unit = bytes_unit();
  for (const Round& round : comparison.rounds)
    fmt::print("with a ceiling {:.0f} MiB of memory, without one {:.0f}\n", round.ours.rss_mib,
               round.peer.rss_mib);
  report({.bench = ours.name,
          .value = comparison.rate() / unit.per_rate,
          .unit = unit.rate,
          .ratio = comparison.rate_ratio(),
          .against = "the same without a ceiling on memory",
          .goal = Goal{Goal::Kind::kAtLeast, 0.95},
          .cpu_s = comparison.cpu_s(),
          .rss_mib = comparison.rss_mib_max(),
          .rss_mib_max = kColdRssMibMax},
         comparison, unit);
}

ObjectIdentity identity_of(const BenchTarget& target, const std::string& key, std::size_t loops) {
  BufferPool pool({.bytes_max = 16 * kMiB, .idle_bytes_max = 0});
  BenchStore client(target, loops, pool);
  return require(client.store().head(run_context(), ObjectKey(key))).identity;
}

void run(const BenchOptions& options) {
  const ScratchDirectory scratch;
  const std::string big_files = scratch.path() + "/" + kColdBucket;
  const std::string piece_files = scratch.path() + "/" + kPiecesBucket;
  std::filesystem::create_directory(big_files);
  std::filesystem::create_directory(piece_files);
  const BenchObjects big = write_files(big_files, 1, kBigBytes, kMiB);
  const BenchObjects pieces = write_files(piece_files, 8, 64 * kMiB, kMiB);
  const std::string key = big.keys.front();
  if (options.wants("nginx")) {
    const millrace::testing::NginxServer nginx(scratch.path(), {.workers = 1});
    const ProxyProcess proxy(nginx.endpoint(), {"--latency", "20ms", "--bandwidth", "4MiB"},
                             scratch.path());
    const BenchTarget target{.server = "slow", .endpoint = proxy.endpoint(), .bucket = kColdBucket};
    const ColdRun cold{.target = target,
                       .key = key,
                       .identity = identity_of(target, key, options.loops),
                       .bytes = kBigBytes,
                       .scratch = scratch.path()};
    measure(cold, pieces, options);
    if (!options.ours_only) measure_ceiling(cold, options);
  }
  if (options.wants("ceph")) {
    millrace::testing::CephServer ceph({.store_bytes = 3 * kBigBytes});
    ceph.create_bucket(kColdBucket);
    ceph.create_bucket(kPiecesBucket);
    const BenchTarget target = target_of(ceph, kColdBucket);
    upload_large(target, big, big_files);
    upload_large(target_of(ceph, kPiecesBucket), pieces, piece_files);
    // The server has them in memory, which is not large enough for both.
    std::filesystem::remove_all(big_files);
    std::filesystem::remove_all(piece_files);
    measure({.target = target,
             .key = key,
             .identity = identity_of(target, key, options.loops),
             .bytes = kBigBytes,
             .scratch = scratch.path()},
            pieces, options);
  }
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.seconds = 1, .rounds = 3});
  return run_bench("cache_cold", [&] { run(options); });
}
