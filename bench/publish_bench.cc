// Publish of many small files against the bandwidth that the same store has for large objects, and
// against tools that store each file as an object. Then a second version in which one file of a
// hundred changed.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/random.h"
#include "base/units.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_store.h"
#include "bench/client_usage.h"
#include "bench/garbage_collection.h"
#include "bench/publish_tree.h"
#include "bench/scratch_directory.h"
#include "bench/upload_peers.h"
#include "dataset/directory_source.h"
#include "dataset/publisher.h"
#include "tests/servers/ceph_server.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kFileBytes = 110 * kKiB;
constexpr std::uint64_t kChangedOneIn = 100;
// Peers that store file by file get this many: their rate does not depend on it.
constexpr std::uint64_t kPeerFiles = 2 * PublishTree::kFilesInDirectory;
constexpr std::uint64_t kRawObjectBytes = 64 * kMiB;
constexpr std::uint64_t kPoolBytes = 512 * kMiB;
constexpr double kRssMibMax = 1024;
// By then large objects have shown what they can.
constexpr std::uint64_t kRawBytesMax = 3 * kGiB;
const std::string kBucket = "published";

// A version that was published.
struct Publication {
  RunFigures figures;  // The amount is the content of all files.
  std::uint64_t stored_bytes = 0;
};

struct PeerFigures {
  RunFigures client;  // Large objects, signed and with checksums as ours are.
  RunFigures curl;    // Large objects, by a client that only moves bytes.
  RunFigures aws;     // File by file.
  RunFigures rclone;
};

class PublishBench {
 public:
  PublishBench(const millrace::testing::CephServer& ceph, const BenchOptions& options,
               PublishTree& tree, const std::string& scratch, const std::string& state)
      : ceph_(ceph),
        options_(options),
        tree_(tree),
        scratch_(scratch),
        state_(state),
        target_(options.tls ? tls_target_of(ceph, kBucket) : target_of(ceph, kBucket)),
        raw_{.object_bytes = kRawObjectBytes,
             .objects =
                 static_cast<std::size_t>(std::min(tree.bytes(), kRawBytesMax) / kRawObjectBytes)} {
  }

  // Lets the server take its memory from the system, which the first one to store would pay for.
  void warm_up() {
    (void)put_by_client(target_, raw_, options_.loops);
    settle();
  }
  // Both versions; what the second one stored is held against what changed.
  void run_ours() {
    std::filesystem::remove_all(state_);
    first = publish_version("v1");
    changed_bytes = tree_.change_every(kChangedOneIn);
    second = publish_version("v2");
    settle();
  }
  PeerFigures run_peers() {
    PeerFigures peers;
    peers.client = settled(put_by_client(target_, raw_, options_.loops));
    peers.curl = settled(put_by_curl(target_, raw_, 1, scratch_));
    const RunFigures two = settled(put_by_curl(target_, raw_, 2, scratch_));
    if (two.rate() > peers.curl.rate()) peers.curl = two;
    peers.aws = settled_files(copy_by_aws(target_, peer_directory(), kPeerFiles, scratch_));
    peers.rclone = settled_files(copy_by_rclone(target_, peer_directory(), kPeerFiles, scratch_));
    return peers;
  }
  // The first version, by files.
  RunFigures first_files() const {
    RunFigures figures = first.figures;
    figures.amount = static_cast<double>(tree_.files());
    return figures;
  }

  Publication first;
  Publication second;
  std::uint64_t changed_bytes = 0;

 private:
  RequestContext context() const {
    return RequestContext(system_clock().now() + std::chrono::minutes(15), "benchmark");
  }

  Publication publish_version(const std::string& version) {
    const std::uint64_t before_bytes = stored_bytes();
    Publication published;
    {
      // As the program has it.
      BufferPool pool({.bytes_max = kPoolBytes, .idle_bytes_max = kPoolBytes / 2});
      BenchStore client(target_, options_.loops, pool);
      const Registry registry({.store = client.store(),
                               .clock = system_clock(),
                               .random = system_random(),
                               .writer = this_process_writer()});
      const ClientUsage usage;
      const auto source = require(DirectorySource::open_root(tree_.root()));
      const PublishReport report =
          require(publish(context(),
                          {.store = client.store(),
                           .registry = registry,
                           .buffers = client.pool(),
                           .clock = system_clock(),
                           .random = system_random(),
                           .state_directory = state_},
                          *source, require(VersionRef::parse("pictures@" + version)), {}));
      published.figures = usage.figures(static_cast<double>(tree_.bytes()));
      if (report.files != tree_.files() || report.bytes != tree_.bytes()) {
        give_up({StatusCode::kInternal, fmt::format("{} files were published", report.files)});
      }
    }
    published.stored_bytes = stored_bytes() - before_bytes;
    return published;
  }

  RunFigures settled(const RunFigures& figures) {
    settle();
    return figures;
  }
  RunFigures settled_files(const RunFigures& figures) {
    const std::vector<ObjectInfo> stored = objects();
    const auto files = std::ranges::count(stored, kFileBytes, &ObjectInfo::size);
    if (static_cast<std::uint64_t>(files) != kPeerFiles) {
      give_up({StatusCode::kInternal, fmt::format("a peer stored {} files", files)});
    }
    return settled(figures);
  }

  // A copy of a part of the tree.
  std::string peer_directory() const {
    const std::string path = scratch_ + "/part";
    if (!std::filesystem::exists(path)) {
      std::filesystem::create_directory(path);
      for (std::uint64_t n = 0; n < kPeerFiles / PublishTree::kFilesInDirectory; ++n) {
        std::filesystem::copy(tree_.directory(n), fmt::format("{}/{}", path, n));
      }
    }
    return path;
  }

  std::vector<ObjectInfo> objects() const {
    BenchStore client(target_, 1, kMiB);
    std::vector<ObjectInfo> found;
    ListRequest request;
    do {
      ListPage page = require(client.store().list(context(), request));
      found.insert(found.end(), page.objects.begin(), page.objects.end());
      request.continuation = std::move(page.continuation);
    } while (!request.continuation.empty());
    return found;
  }
  std::uint64_t stored_bytes() const {
    std::uint64_t bytes = 0;
    for (const ObjectInfo& object : objects())
      bytes += object.size;
    return bytes;
  }

  // Empties the bucket, and waits until the server has freed its memory, which would otherwise slow
  // the next run.
  void settle() {
    std::vector<ObjectKey> keys;
    for (const ObjectInfo& object : objects())
      keys.push_back(object.key);
    BenchStore client(target_, 1, kMiB);
    require(client.store().remove(context(), keys));
    wait_for_garbage_collection(ceph_);
  }

  const millrace::testing::CephServer& ceph_;
  const BenchOptions& options_;
  PublishTree& tree_;
  const std::string scratch_;
  const std::string state_;
  const BenchTarget target_;
  const RawUpload raw_;
};

// What the rounds gave, one comparison for each peer.
struct PublishComparisons {
  Comparison client;
  Comparison curl;
  Comparison aws;
  Comparison rclone;
  Comparison second;  // The "peer" is the first version.
  std::vector<double> second_bytes_ratios;
};

void add_round(Comparison& comparison, const RunFigures& ours, const RunFigures& peer,
               const std::string& peer_name, double ceiling_rate) {
  comparison.ceiling_rate =
      std::max({comparison.ceiling_rate, ours.rate(), peer.rate(), ceiling_rate});
  comparison.rounds.push_back({.ours = ours, .peer = peer, .peer_name = peer_name});
}

PublishComparisons run_rounds(PublishBench& bench, int rounds) {
  PublishComparisons comparisons;
  for (int number = 0; number < rounds; ++number) {
    PeerFigures peers;
    if (number % 2 == 1) peers = bench.run_peers();
    bench.run_ours();
    if (number % 2 == 0) peers = bench.run_peers();
    const RunFigures& first = bench.first.figures;
    const double raw_rate = std::max(peers.client.rate(), peers.curl.rate());
    // No tool stores more files than fit into the bandwidth.
    const double files_rate_max = raw_rate / kFileBytes;
    add_round(comparisons.client, first, peers.client, "our client", raw_rate);
    add_round(comparisons.curl, first, peers.curl, "curl -Z", raw_rate);
    add_round(comparisons.aws, bench.first_files(), peers.aws, "aws s3 cp", files_rate_max);
    add_round(comparisons.rclone, bench.first_files(), peers.rclone, "rclone", files_rate_max);
    add_round(comparisons.second, bench.second.figures, first, "the first version", 0);
    comparisons.second_bytes_ratios.push_back(static_cast<double>(bench.second.stored_bytes) /
                                              static_cast<double>(bench.changed_bytes));
  }
  return comparisons;
}

void report_all(const PublishComparisons& comparisons, bool tls) {
  const std::string server = tls ? "ceph_tls" : "ceph";
  const Unit bytes = bytes_unit();
  const Unit files{"files/s", 1, "CPU s/1000 files", 1000};
  report(result_of(comparisons.client, "publish_" + server, bytes, "PUT of 64 MiB",
                   {Goal::Kind::kAtLeast, 0.8}, kRssMibMax),
         comparisons.client, bytes);
  report(result_of(comparisons.curl, "publish_" + server + "_curl", bytes, "unsigned PUT by curl",
                   {Goal::Kind::kAtLeast, 0.8}, kRssMibMax),
         comparisons.curl, bytes);
  report(result_of(comparisons.aws, "publish_files_aws", files, "aws s3 cp --recursive",
                   {Goal::Kind::kAtLeast, 20}, kRssMibMax),
         comparisons.aws, files);
  report(result_of(comparisons.rclone, "publish_files_rclone", files, "rclone copy",
                   {Goal::Kind::kAtLeast, 20}, kRssMibMax),
         comparisons.rclone, files);
  BenchResult time = result_of(comparisons.second, "publish_second_time", bytes,
                               "the first version", {Goal::Kind::kAtMost, 0.1}, kRssMibMax);
  // The same amount in both, so this is the ratio of the times.
  time.ratio = 1 / time.ratio;
  report(time, comparisons.second, bytes);
  BenchResult stored = time;
  stored.bench = "publish_second_bytes";
  stored.value = stored.ratio = median(comparisons.second_bytes_ratios);
  stored.unit = "bytes/byte";
  stored.against = "what changed";
  stored.goal = Goal{Goal::Kind::kAtMost, 1.05};
  report(stored, comparisons.second, bytes);
}

void run(const BenchOptions& options) {
  const std::uint64_t bytes = options.files * kFileBytes;
  const bool in_memory = bytes <= memory_store_bytes_max();
  const ScratchDirectory scratch;
  const ScratchDirectory disk(ScratchDirectory::Kind::kDisk);
  PublishTree tree((in_memory ? scratch : disk).path() + "/tree", options.files, kFileBytes);
  fmt::print("{} files, {}; the store keeps them {}\n", tree.files(), format_size(tree.bytes()),
             in_memory ? "in memory" : "on a disk");
  // The second version, and what was removed before and is not freed yet.
  millrace::testing::CephServer ceph(
      {.tls = options.tls, .bluestore = !in_memory, .store_bytes = std::max(3 * bytes, 6 * kGiB)});
  ceph.create_bucket(kBucket);
  PublishBench bench(ceph, options, tree, scratch.path(), disk.path() + "/state");
  bench.warm_up();
  if (options.ours_only) {
    const auto run_first = [&] {
      bench.run_ours();
      return bench.first.figures;
    };
    return run_alone({.name = "publish_ceph", .run = run_first}, options.rounds, bytes_unit());
  }
  report_all(run_rounds(bench, options.rounds), options.tls);
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.rounds = 3, .files = 20'000});
  return run_bench("publish", [&] { run(options); });
}
