// A complete file through a mount against the same bytes in a plain file on the same disk, by four
// threads: 1 MiB in sequence, 128 KiB and 4 KiB at random; with the page cache hot, dropped before
// each run, and passed by (O_DIRECT). Once with files handed to the kernel, once without.

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_store.h"
#include "bench/generated_store.h"
#include "bench/peer_process.h"
#include "bench/read_pattern.h"
#include "bench/scratch_directory.h"
#include "platform/file.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kFileBytes = kGiB;
constexpr std::size_t kDirectAlignment = 4096;

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

void drop_page_cache() {
  ::sync();
  std::ofstream("/proc/sys/vm/drop_caches") << "3\n";
}

// The program with a home of its own: a store, a cache and a daemon, all on the disk to measure.
class MountedHome {
 public:
  explicit MountedHome(const std::string& root) : root_(root) {
    std::filesystem::create_directories(root_ + "/mnt");
    std::filesystem::create_directories(root_ + "/store");
  }
  ~MountedHome() { millrace("stop"); }

  // False when it fails.
  bool millrace(const std::string& arguments) const {
    const std::string command = fmt::format(
        "HOME={0} MILLRACE_STORE=file://{0}/store MILLRACE_CACHE={0}/cache "
        "MILLRACE_SOCKET={0}/m.sock {1}/millrace {2} >> {0}/log 2>&1",
        root_, std::filesystem::read_symlink("/proc/self/exe").parent_path().string(), arguments);
    return std::system(command.c_str()) == 0;
  }
  void need(const std::string& arguments) const {
    if (!millrace(arguments)) {
      give_up({StatusCode::kInternal,
               fmt::format("'millrace {}' failed; see {}/log", arguments, root_)});
    }
  }
  const std::string& root() const { return root_; }

 private:
  const std::string root_;
};

RunFigures read_through(const ReadPattern& pattern, PageCache cache, double seconds,
                        const std::string& path) {
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

void read_whole(const std::string& path) {
  const File file = require(File::open(path, O_RDONLY));
  Buffer piece = Buffer::allocate(kMiB);
  for (std::uint64_t at = 0; at < kFileBytes; at += kMiB)
    require(file.read_at(at, piece.bytes()));
}

void measure(const std::string& kind, const ReadPattern& pattern, PageCache cache,
             const MountedHome& home, const BenchOptions& options) {
  const std::string local = home.root() + "/tree/large.bin";
  const std::string mounted = home.root() + "/mnt/large.bin";
  if (cache == PageCache::kHot) {
    read_whole(local);
    read_whole(mounted);
  }
  const Contender ours{
      .name = fmt::format("mount_{}_{}_{}", kind, pattern.name, page_cache_name(cache)),
      .run = [&] { return read_through(pattern, cache, options.seconds, mounted); }};
  const Contender peer{.name = "local file",
                       .run = [&] { return read_through(pattern, cache, options.seconds, local); }};
  const Unit unit = pattern.count_requests ? requests_unit() : bytes_unit();
  const Comparison comparison = compare(ours, {peer}, options.rounds);
  report({.bench = ours.name,
          .value = comparison.rate() / unit.per_rate,
          .unit = unit.rate,
          .ratio = comparison.rate_ratio(),
          .against = "the same reads of a local file",
          .goal = Goal{Goal::Kind::kAtLeast, pattern.goal},
          .cpu_s = comparison.cpu_s(),
          .rss_mib = comparison.rss_mib_max(),
          .rss_mib_max = 0},
         comparison, unit);
}

void write_source(const std::string& path) {
  const File file = require(File::open(path, O_RDWR | O_CREAT | O_TRUNC));
  Buffer piece = Buffer::allocate(kMiB);
  for (std::uint64_t at = 0; at < kFileBytes; at += piece.size()) {
    GeneratedStore::generate(at, piece.bytes());
    require(file.write_at(at, piece.bytes()));
  }
}

void run(const BenchOptions& options) {
  if (::geteuid() != 0) {
    give_up({StatusCode::kPermissionDenied, "only root can drop the page cache and mount"});
  }
  const ScratchDirectory scratch(ScratchDirectory::Kind::kDisk);
  const MountedHome home(scratch.path());
  std::filesystem::create_directories(home.root() + "/tree");
  write_source(home.root() + "/tree/large.bin");
  home.need(fmt::format("publish {}/tree large@v1", home.root()));
  for (const std::string kind : {"passthrough", "stateless"}) {
    home.need(fmt::format("mount --opening {0} large@v1 {1}/mnt", kind, home.root()));
    read_whole(home.root() + "/mnt/large.bin");  // It is complete from the next open on.
    const bool handed_over = kind == "passthrough";
    for (const PageCache cache : {PageCache::kHot, PageCache::kDropped, PageCache::kDirect}) {
      if (!handed_over && cache != PageCache::kHot) continue;
      const double goal = handed_over ? 0.9 : 0.5;
      for (const ReadPattern& pattern : {ReadPattern{"1m_sequential", kMiB, true, goal, false},
                                         ReadPattern{"128k_random", 128 * kKiB, false, goal, false},
                                         ReadPattern{"4k_random", 4 * kKiB, false, goal, true}}) {
        measure(kind, pattern, cache, home, options);
      }
    }
    home.need(fmt::format("umount {}/mnt", home.root()));
  }
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.seconds = 1, .rounds = 3});
  return run_bench("mount_read", [&] { run(options); });
}
