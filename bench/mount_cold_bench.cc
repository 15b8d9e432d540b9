// A cold file read in sequence by one reader through a mount, against the best that parallel curl
// gets from the same store, and against other programs' mounts. Once as fast as the server is, and
// once behind a proxy that adds 20 ms to each request and gives a connection 4 MiB/s, as a distant
// object store does.

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_objects.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_store.h"
#include "bench/curl_peer.h"
#include "bench/mount_peers.h"
#include "bench/mounted_home.h"
#include "bench/page_cache.h"
#include "bench/proxy_process.h"
#include "bench/scratch_directory.h"
#include "bench/tree_readers.h"
#include "tests/servers/ceph_server.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kFileBytes = 2 * kGiB;
// Some peers read over a single connection, which takes minutes on the slow store.
constexpr std::chrono::seconds kPeerTimeMax{20};
constexpr std::size_t kCurlsInFlight = 64;
constexpr double kDaemonRssMibMax = 512;
const std::string kFileName = "object-00000";
const std::string kOurBucket = "ours";
const std::string kPeerBucket = "theirs";

RunFigures read_cold(MountedHome& home) {
  home.mount("large@v1", true);
  RunFigures figures = read_file(home.mount_point() + "/" + kFileName, kFileBytes);
  figures.cpu_s += home.cpu_s();
  figures.rss_mib = home.rss_mib_max();
  home.unmount();
  return figures;
}

RunFigures read_cold(PeerMount::Program program, const BenchTarget& target) {
  const ScratchDirectory root(ScratchDirectory::Kind::kDisk);
  const PeerMount peer(program, target, root.path());
  RunFigures figures =
      read_file_for(peer.mount_point() + "/" + kFileName, kFileBytes, kPeerTimeMax);
  figures.cpu_s += peer.cpu_s();
  return figures;
}

// Both buckets are reached through the endpoint.
void measure(const std::string& name, const std::string& endpoint, BenchTarget target,
             const BenchObjects& objects, const BenchOptions& options) {
  const ScratchDirectory scratch(ScratchDirectory::Kind::kDisk);
  target.endpoint = endpoint;
  target.bucket = kOurBucket;
  MountedHome home(scratch.path() + "/home", target);
  const Contender ours{.name = "mount_cold_" + name, .run = [&] { return read_cold(home); }};
  const Unit unit = bytes_unit();
  if (options.ours_only) return run_alone(ours, options.rounds, unit);
  target.bucket = kPeerBucket;
  std::vector<Contender> forms;
  for (const std::uint64_t range_bytes : {kMiB, 8 * kMiB}) {
    for (const std::size_t processes : {1, 2}) {
      forms.push_back(curl_contender(
          {.target = target, .objects = objects, .visits = 1, .in_flight = kCurlsInFlight},
          {range_bytes, processes}, scratch.path()));
    }
  }
  const Comparison with_curl = compare(ours, std::move(forms), options.rounds);
  report(result_of(with_curl, ours.name, unit, "the best parallel curl",
                   {Goal::Kind::kAtLeast, 0.9}, kDaemonRssMibMax),
         with_curl, unit);
  std::vector<Contender> peers;
  for (const PeerMount::Program program : PeerMount::kAll) {
    peers.push_back({.name = PeerMount::name(program),
                     .run = [&target, program] { return read_cold(program, target); }});
  }
  const Comparison with_peers = compare(ours, std::move(peers), options.rounds);
  report(result_of(with_peers, ours.name + "_peers", unit, "the better of s3fs and rclone mount",
                   {Goal::Kind::kAtLeast, 1}, kDaemonRssMibMax),
         with_peers, unit);
}

void run(const BenchOptions& options) {
  require_root();
  millrace::testing::CephServer ceph({.store_bytes = 4 * kFileBytes});
  ceph.create_bucket(kOurBucket);
  ceph.create_bucket(kPeerBucket);
  const BenchTarget target = target_of(ceph, kPeerBucket);
  BenchObjects objects;
  {
    const ScratchDirectory source(ScratchDirectory::Kind::kDisk);
    const std::string tree = source.path() + "/tree";
    std::filesystem::create_directories(tree);
    objects = write_files(tree, 1, kFileBytes, kMiB);
    upload_large(target, objects, tree);
    MountedHome(source.path() + "/home", target_of(ceph, kOurBucket))
        .millrace(fmt::format("publish {} large@v1", tree));
  }
  const ScratchDirectory scratch;
  if (options.wants("slow")) {
    const ProxyProcess proxy(ceph.endpoint(), {"--latency", "20ms", "--bandwidth", "4MiB"},
                             scratch.path());
    measure("slow", proxy.endpoint(), target, objects, options);
  }
  if (options.wants("ceph")) measure("ceph", ceph.endpoint(), target, objects, options);
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.rounds = 3});
  return run_bench("mount_cold", [&] { run(options); });
}
