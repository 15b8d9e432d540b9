// A complete file through a mount by four threads: 1 MiB in sequence, 128 KiB and 4 KiB at random;
// with the page cache hot, dropped before each run, and passed by (O_DIRECT). Once with files
// handed to the kernel, once without. Against the same bytes in a plain file on the same disk, and
// against other programs' mounts of the same bytes in the same store.

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_objects.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_store.h"
#include "bench/mount_peers.h"
#include "bench/mounted_home.h"
#include "bench/page_cache.h"
#include "bench/read_pattern.h"
#include "bench/scratch_directory.h"
#include "bench/tree_readers.h"
#include "platform/file.h"
#include "tests/servers/ceph_server.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kFileBytes = kGiB;
constexpr std::size_t kDirectAlignment = 4096;
constexpr double kDaemonRssMibMax = 512;
const std::string kFileName = "object-00000";
const std::string kOurBucket = "ours";
const std::string kPeerBucket = "theirs";

enum class PageCache { kHot, kDropped, kDirect };

std::string_view page_cache_name(PageCache cache) {
  switch (cache) {
    case PageCache::kDropped:
      return "dropped";
    case PageCache::kDirect:
      return "direct";
    case PageCache::kHot:
      break;
  }
  return "hot";
}

RunFigures read_through(const ReadPattern& pattern, PageCache cache, double seconds,
                        const std::string& path) {
  if (cache == PageCache::kHot) read_file(path, kFileBytes);
  if (cache == PageCache::kDropped) drop_page_cache();
  const int flags = O_RDONLY | (cache == PageCache::kDirect ? O_DIRECT : 0);
  const File file = require(File::open(path, flags));
  return run_readers(pattern, kFileBytes, seconds, [&]() -> PlaceReader {
    const std::shared_ptr<void> buffer(std::aligned_alloc(kDirectAlignment, pattern.read_bytes),
                                       &std::free);
    return [&file, &pattern, buffer](std::uint64_t at) {
      const ssize_t got =
          ::pread(file.descriptor(), buffer.get(), pattern.read_bytes, static_cast<off_t>(at));
      if (got != static_cast<ssize_t>(pattern.read_bytes)) {
        give_up({StatusCode::kIoError, "a read failed or was short"});
      }
    };
  });
}

// Fills the page cache with all of them, a piece of each in turn. What is read right after much was
// freed comes to lie scattered in memory, and is copied up to a fifth slower than what is read
// later: read one after the other, the first contender would pay for all.
void read_together(const std::vector<std::string>& paths) {
  constexpr std::uint64_t kPieceBytes = 4 * kMiB;
  std::vector<File> files;
  for (const std::string& path : paths)
    files.push_back(require(File::open(path, O_RDONLY)));
  std::vector<std::byte> piece(kPieceBytes);
  for (std::uint64_t at = 0; at < kFileBytes; at += kPieceBytes) {
    for (const File& file : files) {
      if (require(file.read_at(at, piece)) != kPieceBytes) {
        give_up({StatusCode::kIoError, "a read was short"});
      }
    }
  }
}

// A way to the bytes.
struct Way {
  std::string name;
  std::string path;
};

void measure(const std::string& kind, const ReadPattern& pattern, PageCache cache,
             const MountedHome& home, const std::string& local, const std::vector<Way>& peers,
             const BenchOptions& options) {
  const auto contender = [&](const std::string& name, const std::string& path) {
    return Contender{.name = name, .run = [&pattern, cache, &options, path] {
                       return read_through(pattern, cache, options.seconds, path);
                     }};
  };
  const std::string name =
      fmt::format("mount_{}_{}_{}", kind, pattern.name, page_cache_name(cache));
  const Contender ours{.name = name, .run = [&] {
                         RunFigures figures = read_through(pattern, cache, options.seconds,
                                                           home.mount_point() + "/" + kFileName);
                         figures.rss_mib = home.rss_mib_max();
                         return figures;
                       }};
  const Unit unit = pattern.count_requests ? requests_unit() : bytes_unit();
  const Comparison with_local = compare(ours, {contender("local file", local)}, options.rounds);
  report(result_of(with_local, name, unit, "the same reads of a local file",
                   {Goal::Kind::kAtLeast, pattern.goal}, kDaemonRssMibMax),
         with_local, unit);
  std::vector<Contender> others;
  for (const Way& peer : peers)
    others.push_back(contender(peer.name, peer.path));
  const Comparison with_peers = compare(ours, others, options.rounds);
  report(result_of(with_peers, name + "_peers", unit, "the better of s3fs and rclone mount",
                   {Goal::Kind::kAtLeast, 1}, kDaemonRssMibMax),
         with_peers, unit);
}

// Reads of a file that the kernel has must not reach the daemon.
void measure_daemon(const MountedHome& home, const BenchOptions& options) {
  const std::string path = home.mount_point() + "/" + kFileName;
  read_file(path, kFileBytes);
  const double before = home.cpu_s();
  read_through({"1m_sequential", kMiB, true, 0, false}, PageCache::kDirect, options.seconds, path);
  fmt::print("CPU of the daemon while the kernel reads {:.1f} s long: {:.2f} s\n", options.seconds,
             home.cpu_s() - before);
}

void run(const BenchOptions& options) {
  require_root();
  const ScratchDirectory scratch(ScratchDirectory::Kind::kDisk);
  const std::string tree = scratch.path() + "/tree";
  std::filesystem::create_directories(tree);
  const BenchObjects objects = write_files(tree, 1, kFileBytes, kMiB);
  millrace::testing::CephServer ceph({.store_bytes = 4 * kFileBytes});
  ceph.create_bucket(kOurBucket);
  ceph.create_bucket(kPeerBucket);
  upload_large(target_of(ceph, kPeerBucket), objects, tree);
  MountedHome home(scratch.path() + "/home", target_of(ceph, kOurBucket));
  home.millrace(fmt::format("publish {} large@v1", tree));

  std::vector<std::unique_ptr<PeerMount>> mounts;
  std::vector<Way> peers;
  for (const PeerMount::Program program : PeerMount::kAll) {
    mounts.push_back(
        std::make_unique<PeerMount>(program, target_of(ceph, kPeerBucket),
                                    fmt::format("{}/peer{}", scratch.path(), mounts.size())));
    peers.push_back({PeerMount::name(program), mounts.back()->mount_point() + "/" + kFileName});
    read_file(peers.back().path, kFileBytes);
  }
  for (const std::string kind : {"passthrough", "stateless"}) {
    home.mount(fmt::format("--opening {} large@v1", kind));
    const std::string mounted = home.mount_point() + "/" + kFileName;
    read_file(mounted, kFileBytes);  // It is complete from the next open on.
    // The kernel keeps what was written in larger pieces than what was read, and those are copied
    // faster: all contenders' pages shall come from reading.
    drop_page_cache();
    std::vector<std::string> paths = {mounted, tree + "/" + kFileName};
    for (const Way& peer : peers)
      paths.push_back(peer.path);
    read_together(paths);
    const bool handed_over = kind == "passthrough";
    if (handed_over) measure_daemon(home, options);
    for (const PageCache cache : {PageCache::kHot, PageCache::kDropped, PageCache::kDirect}) {
      if (!handed_over && cache != PageCache::kHot) continue;
      const double goal = handed_over ? 0.9 : 0.5;
      for (const ReadPattern& pattern : {ReadPattern{"1m_sequential", kMiB, true, goal, false},
                                         ReadPattern{"128k_random", 128 * kKiB, false, goal, false},
                                         ReadPattern{"4k_random", 4 * kKiB, false, goal, true}}) {
        measure(kind, pattern, cache, home, tree + "/" + kFileName, peers, options);
      }
    }
    home.unmount();
  }
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.seconds = 1, .rounds = 3});
  return run_bench("mount_read", [&] { run(options); });
}
