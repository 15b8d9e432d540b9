// The manifest of a version of ten million small files in packs: what building it takes, what it
// takes on the disk and in the store, how fast it opens and answers.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

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

void run_frames(const std::string& path, const std::string& frames, std::uint64_t file_bytes) {
  const ClientUsage usage;
  const FramesSummary summary = require(write_frames(path, frames));
  const auto stored = static_cast<double>(summary.framed_bytes);
  report_figure("manifest_stored", stored / kFiles, "bytes/file with its name",
                stored / static_cast<double>(file_bytes), "the file", Goal::Kind::kAtMost,
                usage.figures(static_cast<double>(kFiles)));
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

void run() {
  const ScratchDirectory scratch(ScratchDirectory::Kind::kDisk);
  const std::string path = scratch.path() + "/manifest";
  const ManifestSummary summary = run_build(path, scratch.path());
  fmt::print("{} files, {:.0f} MiB\n", summary.totals.files,
             static_cast<double>(summary.file_bytes) / kMiB);
  run_frames(path, scratch.path() + "/frames", summary.file_bytes);
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
