// Ranged GETs of 64 MiB objects, 64 in flight, against parallel curl on the same bytes.

#include <algorithm>
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
#include "bench/curl_peer.h"
#include "bench/scratch_directory.h"
#include "tests/servers/ceph_server.h"
#include "tests/servers/nginx_server.h"

namespace millrace::bench {
namespace {

constexpr std::size_t kObjects = 8;
constexpr std::uint64_t kObjectBytes = 64 * kMiB;
// 64 of them are all the memory that our client needs for data, below the limit of 100 MiB.
constexpr std::uint64_t kRangeBytes = kMiB;
constexpr std::size_t kInFlight = 64;
// Fewer would leave a peer of two processes idle at the end; more would take minutes on a slow day.
constexpr std::size_t kVisitsMin = 4;
constexpr double kRssMibMax = 100;
const std::string kBucket = "large";

using Identities = std::vector<ObjectIdentity>;

Identities find_identities(const FetchPlan& plan, const BenchOptions& options) {
  BenchStore client(plan.target, options.loops, kInFlight * kRangeBytes);
  Identities identities;
  for (const std::string& key : plan.objects.keys)
    identities.push_back(require(client.store().head(run_context(), ObjectKey(key))).identity);
  return identities;
}

LoadPlan load_plan(const FetchPlan& plan, const Identities& identities) {
  LoadPlan load;
  load.in_flight = plan.in_flight;
  load.requests_max = plan.bytes() / kRangeBytes;
  load.request = [&plan, &identities](std::uint64_t number) {
    const std::uint64_t pieces = plan.objects.pieces_per_object();
    const std::size_t object = number / pieces % plan.objects.keys.size();
    return GetRequest{.key = ObjectKey(plan.objects.keys[object]),
                      .range = ByteRange{number % pieces * kRangeBytes, kRangeBytes},
                      .identity = identities[object]};
  };
  return load;
}

// The bytes themselves are compared once, outside the timed runs: curl does not look at them.
Status check_content(const FetchPlan& plan, std::uint64_t number, const GetResult& result) {
  const std::uint32_t expected = plan.objects.piece_crcs[number % plan.objects.piece_crcs.size()];
  if (crc32c(result.data.bytes()) == expected) return {};
  return {StatusCode::kCorruption, fmt::format("piece {} has wrong bytes", number)};
}

RunFigures run_ours(const FetchPlan& plan, const Identities& identities,
                    const BenchOptions& options, bool check) {
  LoadPlan load = load_plan(plan, identities);
  if (check) {
    load.check = [&plan](std::uint64_t number, const GetResult& result) {
      return check_content(plan, number, result);
    };
  }
  BenchStore client(plan.target, options.loops, kInFlight * kRangeBytes);
  const ClientUsage usage;
  const LoadResult done = run_closed_loop(client.store(), load);
  return usage.figures(static_cast<double>(done.bytes));
}

std::vector<Contender> curl_forms(const FetchPlan& plan, const std::string& scratch) {
  std::vector<Contender> forms;
  for (const std::uint64_t range_bytes : {kRangeBytes, 8 * kMiB, kObjectBytes}) {
    for (const std::size_t processes : {1, 2}) {
      forms.push_back(curl_contender(plan, {range_bytes, processes}, scratch));
    }
  }
  return forms;
}

void report_both(const std::string& server, const Comparison& comparison) {
  const Unit unit = bytes_unit();
  BenchResult rate{.bench = "get_large_" + server,
                   .value = comparison.rate() / unit.per_rate,
                   .unit = unit.rate,
                   .ratio = comparison.rate_ratio(),
                   .against = "the best parallel curl",
                   .goal = Goal{Goal::Kind::kAtLeast, 0.95},
                   .cpu_s = comparison.cpu_s(),
                   .rss_mib = comparison.rss_mib_max(),
                   .rss_mib_max = kRssMibMax};
  report(rate, comparison, unit);
  BenchResult cpu = rate;
  cpu.bench += "_cpu";
  cpu.value = comparison.cpu_per_amount() * unit.per_cost;
  cpu.unit = unit.cost;
  cpu.ratio = comparison.cpu_ratio();
  cpu.goal = Goal{Goal::Kind::kAtMost, 1.15};
  report(cpu, comparison, unit);
}

void measure(FetchPlan plan, const BenchOptions& options, const std::string& scratch) {
  const Identities identities = find_identities(plan, options);
  plan.visits = kObjects;
  const double rate = run_ours(plan, identities, options, true).rate();
  const double visits = rate * options.seconds / static_cast<double>(kObjectBytes);
  plan.visits = std::max(kVisitsMin, static_cast<std::size_t>(visits));
  const Contender ours{.name = "get_large_" + plan.target.server,
                       .run = [&] { return run_ours(plan, identities, options, false); }};
  if (options.ours_only) return run_alone(ours, options.rounds, bytes_unit());
  report_both(plan.target.server, compare(ours, curl_forms(plan, scratch), options.rounds));
}

void run(const BenchOptions& options) {
  const ScratchDirectory scratch;
  const std::string files = scratch.path() + "/" + kBucket;
  std::filesystem::create_directory(files);
  const BenchObjects objects = write_files(files, kObjects, kObjectBytes, kRangeBytes);
  if (options.wants("nginx")) {
    const millrace::testing::NginxServer nginx(scratch.path());
    measure({.target = {.server = "nginx", .endpoint = nginx.endpoint(), .bucket = kBucket},
             .objects = objects,
             .in_flight = kInFlight},
            options, scratch.path());
  }
  if (options.wants("ceph")) {
    millrace::testing::CephServer ceph;
    ceph.create_bucket(kBucket);
    const BenchTarget target = target_of(ceph, kBucket);
    upload_large(target, objects, files);
    measure({.target = target, .objects = objects, .in_flight = kInFlight}, options,
            scratch.path());
  }
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.seconds = 1.5, .rounds = 5});
  return run_bench("get_large", [&] { run(options); });
}
