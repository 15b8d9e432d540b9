// How soon a cache serves again after a restart, with the index of a terabyte on its disk: small
// objects in segments, whose indexes a start reads, and large ones in files of their own, which are
// counted in the background.
//
// The index is simulated: the terabyte itself is holes. Two objects are real, and are read back.

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_store.h"
#include "bench/cache_bench_setup.h"
#include "bench/client_usage.h"
#include "bench/generated_store.h"
#include "bench/scratch_directory.h"
#include "bench/simulated_index.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kIndexedBytes = 1'000'000'000'000;
constexpr std::uint64_t kSmallBytes = 128 * kKiB;
// Of the usual 4 MiB there would be a quarter of a million, and making and removing their files
// takes minutes. An object costs the background count two files to open, whatever its size.
constexpr std::uint64_t kLargeBytes = 32 * kMiB;
constexpr double kStartSecondsMax = 2;

struct StartRun {
  std::string name;
  std::string directory;
  SimulatedIndex index;
  bool from_disk = false;  // With nothing of the directory in memory.
};

// One of each kind, and both in the cache.
std::array<ObjectVersion, 2> real_objects() {
  const std::string identity(GeneratedStore::kIdentity);
  return {CacheBenchSetup::object("real/small", identity, kSmallBytes),
          CacheBenchSetup::object("real/large", identity, kLargeBytes)};
}

CacheBenchOptions cache_options(const std::string& directory) {
  return {.directory = directory, .quota_bytes = 2 * kIndexedBytes};
}

void cache_real_objects(const std::string& directory) {
  CacheBenchSetup setup(cache_options(directory));
  setup.add_store(std::make_shared<GeneratedStore>(setup.pool()));
  for (const ObjectVersion& object : real_objects())
    require(setup.cache().warm(run_context(), object, {0, object.size()}, Urgency::kDemanded));
  setup.close();
}

// There is no store below: what is read comes from the disk, or the benchmark ends here.
Slice read_beginning(CacheBenchSetup& setup, const ObjectVersion& object) {
  return read_now(setup.cache(), run_context(), object, {0, kSmallBytes});
}

void check_beginning(const Slice& data) {
  std::vector<std::byte> expected(kSmallBytes);
  GeneratedStore::generate(0, expected);
  if (!std::ranges::equal(data.bytes(), expected)) {
    give_up({StatusCode::kInternal, "the restarted cache serves other bytes than it was given"});
  }
}

bool may_drop_memory() { return ::access("/proc/sys/vm/drop_caches", W_OK) == 0; }

// Forgets what the kernel keeps of any disk: pages, names and inodes.
void drop_memory() {
  ::sync();
  std::ofstream file("/proc/sys/vm/drop_caches");
  file << "3";
  if (!file.flush()) give_up({StatusCode::kInternal, "cannot drop the caches of the kernel"});
}

// Starts the cache and reads an object of each kind as soon as it can; then waits until all is
// counted, if that is to be shown.
RunFigures restart(const StartRun& run, bool show_count) {
  using Seconds = std::chrono::duration<double>;
  if (run.from_disk) drop_memory();
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [start] {
    return Seconds(std::chrono::steady_clock::now() - start).count();
  };
  const ClientUsage usage;
  CacheBenchSetup setup(cache_options(run.directory));
  const double opened = elapsed();
  const auto [small, large] = real_objects();
  const Slice of_small = read_beginning(setup, small);
  const double read_small = elapsed();
  const Slice of_large = read_beginning(setup, large);
  const double read_large = elapsed();
  const RunFigures figures = usage.figures(static_cast<double>(run.index.bytes));
  check_beginning(of_small);
  check_beginning(of_large);
  fmt::print(
      "{}: open after {:.3f} s, a small object read after {:.3f} s, a large one after "
      "{:.3f} s, {:.0f} MiB\n",
      run.name, opened, read_small, read_large, figures.rss_mib);
  if (show_count) {
    setup.cache().wait_for_scan();
    fmt::print("{}: all {:.0f} GiB counted after {:.2f} s, {:.0f} MiB\n", run.name,
               static_cast<double>(setup.cache().usage().used_bytes) / kGiB, elapsed(),
               usage.figures(1).rss_mib);
  }
  std::fflush(stdout);
  setup.close();
  // A restarted process begins with fresh memory.
  (void)::malloc_trim(0);
  return figures;
}

RunFigures read_index(const StartRun& run) {
  if (run.from_disk) drop_memory();
  const ClientUsage usage;
  read_plainly(run.index);
  return usage.figures(static_cast<double>(run.index.bytes));
}

void measure(const StartRun& run, const BenchOptions& options) {
  bool show_count = true;
  const Contender ours{.name = run.name,
                       .run = [&] { return restart(run, std::exchange(show_count, false)); }};
  const Unit unit = bytes_unit();
  if (options.ours_only) return run_alone(ours, options.rounds, unit);
  const Contender peer{.name = "read()", .run = [&] { return read_index(run); }};
  const Comparison comparison = compare(ours, {peer}, options.rounds);
  const double seconds = static_cast<double>(run.index.bytes) / comparison.rate();
  report(
      {.bench = run.name,
       .value = seconds,
       .unit = "s",
       .ratio = seconds / kStartSecondsMax,
       .against = fmt::format("{} s; plain read() of the {:.0f} MiB of index takes {:.2f} of ours",
                              kStartSecondsMax, static_cast<double>(run.index.bytes) / kMiB,
                              comparison.rate_ratio()),
       .goal = Goal{Goal::Kind::kAtMost, 1},
       .cpu_s = comparison.cpu_s(),
       .rss_mib = comparison.rss_mib_max()},
      comparison, unit);
}

using Simulate = std::function<SimulatedIndex(const std::string& directory)>;

void run_kind(const std::string& kind, const Simulate& simulate, const BenchOptions& options) {
  const ScratchDirectory scratch(ScratchDirectory::Kind::kDisk);
  StartRun run{.name = "cache_start_" + kind, .directory = scratch.path() + "/cache", .index = {}};
  cache_real_objects(run.directory);
  run.index = simulate(run.directory);
  fmt::print("{}: {} objects, {} files of index with {:.0f} MiB\n", run.name, run.index.objects,
             run.index.files.size(), static_cast<double>(run.index.bytes) / kMiB);
  measure(run, options);
  if (!may_drop_memory()) {
    fmt::print(
        "{}: only root can drop the kernel's caches, so a start from the disk is not timed\n",
        run.name);
    return;
  }
  run.name += "_from_disk";
  run.from_disk = true;
  measure(run, options);
}

void run(const BenchOptions& options) {
  run_kind(
      "small",
      [](const std::string& directory) {
        return simulate_small_objects(directory, kSmallBytes, kIndexedBytes);
      },
      options);
  run_kind(
      "large",
      [](const std::string& directory) {
        return simulate_large_objects(directory, kLargeBytes, kIndexedBytes);
      },
      options);
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.seconds = 1, .rounds = 2});
  return run_bench("cache_start", [&] { run(options); });
}
