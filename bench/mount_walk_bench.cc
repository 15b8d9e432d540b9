// `ls -lR` and `find -size +0` over a mount of many files, against the same tree on the local disk
// after its names and attributes are in memory; the first time after the mount, and again. And how
// long the first `ls` takes.

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/mounted_home.h"
#include "bench/page_cache.h"
#include "bench/peer_process.h"
#include "bench/publish_tree.h"
#include "bench/scratch_directory.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kFileBytes = 16;
constexpr double kDaemonRssMibMax = 512;

struct Walk {
  std::string name;
  std::vector<std::string> command;  // The directory goes between the first two words.
};

class WalkBench {
 public:
  WalkBench(const PublishTree& tree, const std::string& disk, const BenchOptions& options)
      : tree_(tree), scratch_(disk), options_(options), home_(disk + "/home") {
    home_.millrace(fmt::format("publish {} names@v1", tree.root()));
  }

  void measure(const Walk& walk) {
    Comparison first;
    Comparison second;
    for (int round = 0; round < options_.rounds; ++round) {
      walk_over(tree_.root(), walk);  // So that the local names are in memory.
      const RunFigures local = walk_over(tree_.root(), walk);
      home_.mount("names@v1");
      add(first, walk_over(home_.mount_point(), walk), local);
      add(second, walk_over(home_.mount_point(), walk), local);
      home_.unmount();
    }
    report_one(first, walk.name + "_first", 0.2);
    report_one(second, walk.name + "_second", 0.5);
  }

  // With a new daemon, which opens the manifest that the cache of manifests has.
  void measure_first_list() {
    std::vector<double> milliseconds;
    home_.mount("names@v1");
    home_.unmount();
    for (int round = 0; round < options_.rounds; ++round) {
      home_.millrace("stop");
      home_.mount("names@v1");
      milliseconds.push_back(1000 * walk_over(home_.mount_point(), {"ls", {"ls"}}).seconds);
      home_.unmount();
    }
    fmt::print("the first ls after a mount: {:.1f} ms (asked: below 50)\n", median(milliseconds));
  }

 private:
  RunFigures walk_over(const std::string& directory, const Walk& walk) const {
    std::vector<std::string> command = walk.command;
    command.insert(command.begin() + 1, directory);
    RunFigures figures = run_peer({command}, scratch_).figures;
    figures.amount = static_cast<double>(tree_.files());
    return figures;
  }
  void add(Comparison& comparison, RunFigures ours, const RunFigures& local) const {
    ours.rss_mib = home_.rss_mib_max();
    comparison.ceiling_rate = std::max({comparison.ceiling_rate, ours.rate(), local.rate()});
    comparison.rounds.push_back({.ours = ours, .peer = local, .peer_name = "local disk"});
  }
  static void report_one(const Comparison& comparison, const std::string& name, double goal) {
    const Unit unit{"files/s", 1, "CPU s/1000 files", 1000};
    report(result_of(comparison, "mount_walk_" + name, unit, "the same on ext4, names in memory",
                     {Goal::Kind::kAtLeast, goal}, kDaemonRssMibMax),
           comparison, unit);
  }

  const PublishTree& tree_;
  const std::string scratch_;
  const BenchOptions& options_;
  MountedHome home_;
};

void run(const BenchOptions& options) {
  require_root();
  const ScratchDirectory disk(ScratchDirectory::Kind::kDisk);
  const PublishTree tree(disk.path() + "/tree", options.files, kFileBytes);
  WalkBench bench(tree, disk.path(), options);
  bench.measure_first_list();
  bench.measure({"ls", {"ls", "-lR"}});
  bench.measure({"find", {"find", "-size", "+0"}});
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.rounds = 3, .files = 1'000'000});
  return run_bench("mount_walk", [&] { run(options); });
}
