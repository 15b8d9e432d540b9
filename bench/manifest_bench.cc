// The manifest of a version of ten million small files in packs: what building it takes, what it
// takes on the disk and in the store, how fast it opens and answers.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/thread_pool.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_store.h"
#include "bench/client_usage.h"
#include "bench/scratch_directory.h"
#include "cache/unit.h"
#include "dataset/frame_writer.h"
#include "dataset/manifest.h"
#include "dataset/manifest_builder.h"
#include "dataset/manifest_cursor.h"
#include "dataset/manifest_store.h"
#include "objectstore/memory_object_store.h"
#include "objectstore/recording_object_store.h"
#include "platform/file.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kFiles = 10'000'000;
constexpr std::uint64_t kFilesInDirectory = 1300;
constexpr std::uint64_t kFileBytes = 110 * kKiB;
constexpr std::uint64_t kFilesInPack = 64 * kMiB / kFileBytes;
constexpr std::uint64_t kLookups = 2'000'000;
constexpr double kBuildRssMibMax = 512;
constexpr double kOpenMsMax = 20;
constexpr double kLookupsMin = 1e6;
constexpr double kReaddirMin = 5e6;
constexpr double kFileBytesMax = 100;
constexpr double kColdOpenRequestsMax = 3;
constexpr Duration kColdLatency = std::chrono::milliseconds(20);

std::string path_of_file(std::uint64_t file) {
  const std::uint64_t directory = file / kFilesInDirectory;
  return fmt::format("train/n{:08}/n{:08}_{}.JPEG", directory, directory, file);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Files come directory by directory, but the directories in no order: as from a parallel scan.
ManifestSummary build(const std::string& path, const std::string& scratch) {
  const auto builder = require(ManifestBuilder::create({.path = path, .scratch = scratch}));
  const std::vector<std::uint32_t> checksums(unit_count(kFilesInPack * kFileBytes), 1);
  std::mt19937_64 random(1);
  for (std::uint64_t file = 0; file < kFiles; file += kFilesInPack) {
    require(builder->add_object({.key = ObjectKey(fmt::format("imagenet/v1/packs/{:08}.tar", file)),
                                 .identity = ObjectIdentity(fmt::format("\"{:032x}\"", file)),
                                 .size = kFilesInPack * kFileBytes,
                                 .foreign = false,
                                 .checksums = checksums}));
  }
  std::vector<std::uint64_t> directories((kFiles + kFilesInDirectory - 1) / kFilesInDirectory);
  for (std::uint64_t i = 0; i < directories.size(); ++i)
    directories[i] = i;
  std::ranges::shuffle(directories, random);
  NewEntry entry{.mode = 0644, .size = kFileBytes, .extents = {Extent{}}};
  entry.hash.kind = HashKind::kSha256;
  for (const std::uint64_t directory : directories) {
    const std::uint64_t first = directory * kFilesInDirectory;
    for (std::uint64_t file = first; file < std::min(first + kFilesInDirectory, kFiles); ++file) {
      entry.path = path_of_file(file);
      entry.mtime_ns =
          static_cast<std::int64_t>(1'600'000'000'000'000'000 + random() % 1'000'000'000);
      for (std::size_t at = 0; at < entry.hash.bytes.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t word = random();
        std::memcpy(entry.hash.bytes.data() + at, &word, sizeof word);
      }
      entry.extents[0] = {.object = static_cast<std::uint32_t>(file / kFilesInPack),
                          .codec = ExtentCodec::kNone,
                          .offset = file % kFilesInPack * kFileBytes,
                          .stored_bytes = kFileBytes,
                          .logical_bytes = kFileBytes};
      require(builder->add(entry));
    }
  }
  return require(builder->finish());
}

void report_figure(const std::string& name, double value, const std::string& unit, double ratio,
                   const std::string& against, Goal::Kind kind, const RunFigures& figures,
                   double rss_mib_max = 0) {
  Comparison comparison;
  comparison.rounds.push_back({.ours = figures, .peer = figures, .peer_name = "itself"});
  comparison.ceiling_rate = figures.rate();
  report({.bench = name,
          .value = value,
          .unit = unit,
          .ratio = ratio,
          .against = against,
          .goal = Goal{kind, 1},
          .cpu_s = figures.cpu_s,
          .rss_mib = figures.rss_mib,
          .rss_mib_max = rss_mib_max},
         comparison, requests_unit());
}

ManifestSummary run_build(const std::string& path, const std::string& scratch) {
  const ClientUsage usage;
  const ManifestSummary summary = build(path, scratch);
  const RunFigures figures = usage.figures(static_cast<double>(kFiles));
  std::uint64_t name_bytes = 0;
  for (std::uint64_t file = 0; file < kFiles; ++file)
    name_bytes += path_of_file(file).size() - path_of_file(0).find_last_of('/') - 1;
  const double bytes = static_cast<double>(summary.file_bytes - name_bytes) / kFiles;
  report_figure("manifest_build", figures.rss_mib, "MiB", figures.rss_mib / kBuildRssMibMax,
                "512 MiB", Goal::Kind::kAtMost, figures, kBuildRssMibMax);
  report_figure("manifest_bytes", bytes, "bytes/file beside its name", bytes / kFileBytesMax,
                "100 bytes", Goal::Kind::kAtMost, figures);
  return summary;
}

FramesSummary run_frames(const std::string& path, const std::string& frames,
                         std::uint64_t file_bytes) {
  const ClientUsage usage;
  const FramesSummary summary = require(write_frames(path, frames));
  const auto stored = static_cast<double>(summary.framed_bytes);
  report_figure("manifest_stored", stored / kFiles, "bytes/file with its name",
                stored / static_cast<double>(file_bytes), "the file", Goal::Kind::kAtMost,
                usage.figures(static_cast<double>(kFiles)));
  return summary;
}

void run_open(const std::string& path) {
  std::vector<double> times_ms;
  const ClientUsage usage;
  for (int i = 0; i < 21; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto manifest = require(Manifest::open(path));
    times_ms.push_back(seconds_since(start) * 1000);
  }
  std::ranges::sort(times_ms);
  const double median_ms = times_ms[times_ms.size() / 2];
  report_figure("manifest_open", median_ms, "ms", median_ms / kOpenMsMax, "20 ms",
                Goal::Kind::kAtMost, usage.figures(static_cast<double>(times_ms.size())));
}

// Random names in random directories, with the directories they are in.
std::vector<std::pair<EntryIndex, std::string>> random_names(const Manifest& manifest,
                                                             std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const EntryIndex train = require(manifest.find(Manifest::root(), "train")).value();
  std::vector<std::pair<EntryIndex, std::string>> names;
  for (std::uint64_t i = 0; i < kLookups; ++i) {
    const std::string path = path_of_file(random() % kFiles);
    const std::size_t slash = path.find_last_of('/');
    const std::size_t directory = path.find('/') + 1;
    names.emplace_back(
        require(manifest.find(train, path.substr(directory, slash - directory))).value(),
        path.substr(slash + 1));
  }
  return names;
}

void find_all(const Manifest& manifest,
              const std::vector<std::pair<EntryIndex, std::string>>& names) {
  std::uint64_t found = 0;
  for (const auto& [parent, name] : names)
    found += require(manifest.find(parent, name)) ? 1 : 0;
  if (found != names.size()) give_up({StatusCode::kInternal, "a name was not found"});
}

// By processor time, because the figure is meant for one core, whatever else runs. The first round
// touches the pages, which checks them; the second one is what a file system sees from then on.
void run_lookups(const Manifest& manifest) {
  find_all(manifest, random_names(manifest, 2));
  const auto names = random_names(manifest, 3);
  const ClientUsage usage;
  find_all(manifest, names);
  const RunFigures figures = usage.figures(static_cast<double>(kLookups));
  const double rate = figures.amount / figures.cpu_s;
  report_figure("manifest_lookup", rate, "lookups/CPU s", rate / kLookupsMin, "1 million/s",
                Goal::Kind::kAtLeast, figures);
}

void run_readdir(const Manifest& manifest) {
  const ClientUsage usage;
  std::uint64_t names = 0;
  std::uint64_t bytes = 0;
  const EntryIndex train = require(manifest.find(Manifest::root(), "train")).value();
  ChildCursor directories(manifest, require(manifest.children(require(manifest.entry(train)))));
  while (const auto directory = require(directories.next())) {
    ChildCursor files(manifest, require(manifest.children(directory->entry)));
    while (const auto file = require(files.next())) {
      ++names;
      bytes += file->name.size();
    }
  }
  const RunFigures figures = usage.figures(static_cast<double>(names));
  if (names != kFiles || bytes == 0) give_up({StatusCode::kInternal, "a file is missing"});
  report_figure("manifest_readdir", figures.rate(), "entries/s", figures.rate() / kReaddirMin,
                "5 million/s", Goal::Kind::kAtLeast, figures);
}

// A store in which every request takes as long as over a network, with the manifest in it.
class ColdStore {
 public:
  ColdStore(const std::string& frames, const FramesSummary& summary)
      : layout_{.layout_digest = summary.layout_digest,
                .manifest_key = "manifest",
                .manifest_bytes = summary.framed_bytes,
                .index_bytes = summary.index_bytes} {
    const File file = require(File::open(frames, O_RDONLY));
    Buffer bytes = Buffer::allocate(summary.framed_bytes);
    (void)require(file.read_at(0, bytes.bytes()));
    (void)require(store_.put(run_context(), ObjectKey(layout_.manifest_key),
                             std::move(bytes).freeze(), PutOptions{}));
  }

  std::unique_ptr<Manifest> open(const std::string& directory) {
    return require(ManifestStore(store_, directory).open(run_context(), layout_));
  }

  // Prints what was asked for since the last call and how long it took, and returns the former.
  double tell(std::string_view what, std::chrono::steady_clock::time_point start) {
    const std::vector<RecordedRequest> requests = store_.requests();
    std::uint64_t bytes = 0;
    for (const RecordedRequest& request : requests)
      bytes += request.range.value_or(ByteRange{}).length;
    fmt::print("  {}: {} requests, {} KiB, {:.0f} ms at {} ms each\n", what, requests.size(),
               bytes / kKiB, seconds_since(start) * 1000,
               std::chrono::duration_cast<std::chrono::milliseconds>(kColdLatency).count());
    store_.clear();
    return static_cast<double>(requests.size());
  }
  void forget() { store_.clear(); }

 private:
  const VersionLayout layout_;
  ThreadPool answers_{{.name = "answers", .threads = 1}};
  RecordingObjectStore store_{std::make_shared<MemoryObjectStore>(
      system_clock(), answers_,
      MemoryObjectStoreOptions{.name = "manifests", .latency = kColdLatency})};
};

// The first things that a node asks which has never seen the version.
void run_cold(const std::string& frames, const FramesSummary& summary, const std::string& scratch) {
  ColdStore store(frames, summary);
  store.forget();
  const ClientUsage usage;
  auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<Manifest> manifest = store.open(scratch + "/cold");
  const double requests = store.tell("open", start);
  const RunFigures figures = usage.figures(requests);

  start = std::chrono::steady_clock::now();
  const EntryIndex train = require(manifest->find(Manifest::root(), "train")).value();
  const std::string path = path_of_file(kFiles / 2);
  const std::size_t slash = path.find_last_of('/');
  const std::size_t name = path.find('/') + 1;
  const EntryIndex directory =
      require(manifest->find(train, path.substr(name, slash - name))).value();
  if (!require(manifest->find(directory, path.substr(slash + 1)))) {
    give_up({StatusCode::kInternal, "a name was not found"});
  }
  (void)store.tell("look-up of the first file", start);

  start = std::chrono::steady_clock::now();
  ChildCursor files(*manifest, require(manifest->children(require(manifest->entry(directory)))));
  while (require(files.next())) {
  }
  (void)store.tell("readdir beside it", start);
  report_figure("manifest_cold_open", requests, "requests", requests / kColdOpenRequestsMax,
                "3 round trips", Goal::Kind::kAtMost, figures);
}

void run() {
  const ScratchDirectory scratch(ScratchDirectory::Kind::kDisk);
  const std::string path = scratch.path() + "/manifest";
  const ManifestSummary summary = run_build(path, scratch.path());
  fmt::print("{} files, {:.0f} MiB\n", summary.totals.files,
             static_cast<double>(summary.file_bytes) / kMiB);
  const std::string frames = scratch.path() + "/frames";
  const FramesSummary framed = run_frames(path, frames, summary.file_bytes);
  run_cold(frames, framed, scratch.path());
  run_open(path);
  const auto manifest = require(Manifest::open(path));
  run_lookups(*manifest);
  run_readdir(*manifest);
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  (void)parse_options(argc, argv, {.seconds = 1, .rounds = 1});
  return run_bench("manifest", [] { run(); });
}
