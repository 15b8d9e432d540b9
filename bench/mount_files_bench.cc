// Many small files through a mount, by eight readers of one process: cold against other programs'
// mounts of the same files in the same store, where each file is an object, and against what the
// store gives to curl in large pieces; warm against the same files on the local disk. Cold also
// behind a proxy that adds 20 ms to each request, as a distant object store does.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "bench/bench_objects.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_store.h"
#include "bench/curl_peer.h"
#include "bench/mount_peers.h"
#include "bench/mounted_home.h"
#include "bench/page_cache.h"
#include "bench/proxy_process.h"
#include "bench/publish_tree.h"
#include "bench/scratch_directory.h"
#include "bench/tree_readers.h"
#include "bench/upload_peers.h"
#include "tests/servers/ceph_server.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kFileBytes = 110 * kKiB;
constexpr unsigned kReaders = 8;
// Peers fetch file by file, so that their rate does not depend on how many there are.
constexpr std::uint64_t kPeerFiles = 2 * PublishTree::kFilesInDirectory;
// The page cache has to hold them twice: ours and the local ones.
constexpr std::uint64_t kHotFilesMax = 20'000;
constexpr double kDaemonRssMibMax = 512;
constexpr std::uint64_t kPieceBytes = 64 * kMiB;
constexpr std::size_t kPieces = 16;
constexpr std::size_t kCurlsInFlight = 32;
const std::string kPieceBucket = "pieces";
const std::string kOurBucket = "ours";
const std::string kPeerBucket = "theirs";

Unit files_unit() { return {"files/s", 1, "CPU s/1000 files", 1000}; }

class MountFilesBench {
 public:
  // All buckets are reached through the endpoint of `store`, and the home is made below `disk`.
  MountFilesBench(BenchTarget store, const PublishTree& tree, const std::string& disk,
                  const BenchOptions& options)
      : store_(std::move(store)),
        tree_(tree),
        options_(options),
        scratch_(disk),
        files_(tree_files(tree.root(), tree.files())),
        home_(fmt::format("{}/home_{}", disk, store_.server), bucket(kOurBucket)) {}

  // In the order of their names, and in no order.
  void measure_cold(const BenchObjects& pieces) {
    measure_cold("cold_in_order_" + store_.server, files_, pieces);
    measure_cold("cold_shuffled_" + store_.server, shuffled(files_), pieces);
  }

  // The cache holds all of it from the cold runs.
  void measure_warm() {
    home_.mount("pictures@v1");
    measure_warm("warm_dropped", shuffled(files_), true);
    std::vector<std::string> hot = files_;
    hot.resize(std::min<std::uint64_t>(hot.size(), kHotFilesMax));
    measure_warm("warm_hot", shuffled(std::move(hot)), false);
  }

 private:
  BenchTarget bucket(const std::string& name) const {
    BenchTarget target = store_;
    target.bucket = name;
    return target;
  }

  RunFigures read_mounted(const std::vector<std::string>& files) const {
    const double cpu_s_before = home_.cpu_s();
    RunFigures figures = read_files(home_.mount_point(), files, kFileBytes, kReaders);
    figures.cpu_s += home_.cpu_s() - cpu_s_before;
    figures.rss_mib = home_.rss_mib_max();
    return figures;
  }

  void measure_cold(const std::string& name, const std::vector<std::string>& files,
                    const BenchObjects& pieces) {
    const Contender ours{.name = "mount_files_" + name, .run = [&] {
                           home_.mount("pictures@v1", true);
                           const RunFigures figures = read_mounted(files);
                           home_.unmount();
                           return figures;
                         }};
    if (options_.ours_only) return run_alone(ours, options_.rounds, files_unit());
    // The part of the files that peers have, in the same order.
    std::vector<std::string> part;
    std::ranges::copy_if(files, std::back_inserter(part), [&](const std::string& file) {
      return std::ranges::binary_search(files_.begin(), files_.begin() + kPeerFiles, file);
    });
    std::vector<Contender> peers;
    for (const PeerMount::Program program : PeerMount::kAll) {
      peers.push_back({.name = PeerMount::name(program), .run = [this, program, part] {
                         const ScratchDirectory root(ScratchDirectory::Kind::kDisk);
                         const PeerMount peer(program, bucket(kPeerBucket), root.path());
                         RunFigures figures =
                             read_files(peer.mount_point() + "/rclone", part, kFileBytes, kReaders);
                         figures.cpu_s += peer.cpu_s();
                         return figures;
                       }});
    }
    const Comparison comparison = compare(ours, std::move(peers), options_.rounds);
    report(result_of(comparison, ours.name, files_unit(), "the better of s3fs and rclone mount",
                     {Goal::Kind::kAtLeast, 10}, kDaemonRssMibMax),
           comparison, files_unit());
    const Comparison with_store = compare(ours, curls(pieces), options_.rounds);
    BenchResult store = result_of(with_store, ours.name + "_store", files_unit(),
                                  "as many bytes by parallel curl", {}, kDaemonRssMibMax);
    store.goal.reset();
    report(store, with_store, files_unit());
  }

  // All the bytes of the store, whatever they are; the amount is how many files they would be.
  std::vector<Contender> curls(const BenchObjects& pieces) const {
    std::vector<Contender> curls;
    for (const std::size_t processes : {1, 2}) {
      const Contender curl = curl_contender({.target = bucket(kPieceBucket),
                                             .objects = pieces,
                                             .visits = pieces.keys.size(),
                                             .in_flight = kCurlsInFlight},
                                            {kPieceBytes / 8, processes}, scratch_);
      curls.push_back({.name = curl.name, .run = [curl] {
                         RunFigures figures = curl.run();
                         figures.amount /= kFileBytes;
                         return figures;
                       }});
    }
    return curls;
  }

  void measure_warm(const std::string& name, const std::vector<std::string>& files, bool dropped) {
    const auto prepare = [&](const std::string& root) {
      if (dropped) return drop_page_cache();
      read_files(root, files, kFileBytes, kReaders);
    };
    const Contender ours{.name = "mount_files_" + name, .run = [&] {
                           prepare(home_.mount_point());
                           return read_mounted(files);
                         }};
    const Contender local{.name = "local disk", .run = [&] {
                            prepare(tree_.root());
                            return read_files(tree_.root(), files, kFileBytes, kReaders);
                          }};
    if (options_.ours_only) return run_alone(ours, options_.rounds, files_unit());
    const Comparison comparison = compare(ours, {local}, options_.rounds);
    report(result_of(comparison, ours.name, files_unit(), "the same files on the local disk",
                     {Goal::Kind::kAtLeast, 0.5}, kDaemonRssMibMax),
           comparison, files_unit());
  }

  const BenchTarget store_;
  const PublishTree& tree_;
  const BenchOptions& options_;
  const std::string scratch_;
  const std::vector<std::string> files_;
  MountedHome home_;
};

// The first directories of the tree, file by file.
void upload_for_peers(millrace::testing::CephServer& ceph, const PublishTree& tree,
                      const std::string& scratch) {
  const std::filesystem::path part = scratch + "/part";
  std::filesystem::create_directory(part);
  for (std::uint64_t n = 0; n < kPeerFiles / PublishTree::kFilesInDirectory; ++n) {
    const std::filesystem::path directory = tree.directory(n);
    std::filesystem::copy(directory, part / directory.filename());
  }
  ceph.create_bucket(kPeerBucket);
  copy_by_rclone(target_of(ceph, kPeerBucket), part, kPeerFiles, scratch);
}

// What curl fetches.
BenchObjects upload_pieces(millrace::testing::CephServer& ceph, const std::string& scratch) {
  const std::string files = scratch + "/pieces";
  std::filesystem::create_directory(files);
  BenchObjects pieces = write_files(files, kPieces, kPieceBytes, kMiB);
  ceph.create_bucket(kPieceBucket);
  upload_large(target_of(ceph, kPieceBucket), pieces, files);
  return pieces;
}

void run(const BenchOptions& options) {
  require_root();
  const ScratchDirectory disk(ScratchDirectory::Kind::kDisk);
  const PublishTree tree(disk.path() + "/tree", options.files, kFileBytes);
  const bool in_memory = tree.bytes() <= memory_store_bytes_max();
  fmt::print("{} files, {}; the store keeps them {}\n", tree.files(), format_size(tree.bytes()),
             in_memory ? "in memory" : "on a disk");
  millrace::testing::CephServer ceph(
      {.bluestore = !in_memory, .store_bytes = 2 * tree.bytes() + 4 * kGiB});
  ceph.create_bucket(kOurBucket);
  BenchObjects pieces;
  if (!options.ours_only) {
    upload_for_peers(ceph, tree, disk.path());
    pieces = upload_pieces(ceph, disk.path());
  }
  BenchTarget target = target_of(ceph, kOurBucket);
  MountedHome(disk.path() + "/publisher", target)
      .millrace(fmt::format("publish {} pictures@v1", tree.root()));
  if (options.wants("ceph")) {
    MountFilesBench bench(target, tree, disk.path(), options);
    bench.measure_cold(pieces);
    bench.measure_warm();
  }
  if (options.wants("slow")) {
    const ProxyProcess proxy(ceph.endpoint(), {"--latency", "20ms"}, disk.path());
    target.server = "slow";
    target.endpoint = proxy.endpoint();
    MountFilesBench(target, tree, disk.path(), options).measure_cold(pieces);
  }
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.rounds = 3, .files = 8'000});
  return run_bench("mount_files", [&] { run(options); });
}
