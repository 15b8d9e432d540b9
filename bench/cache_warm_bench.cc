// Warm reads through the cache against pread of a plain file with the same bytes on the same file
// system, by four threads: 1 MiB in sequence, 128 KiB at random, 4 KiB at random.

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_store.h"
#include "bench/cache_bench_setup.h"
#include "bench/generated_store.h"
#include "bench/read_pattern.h"
#include "bench/scratch_directory.h"
#include "platform/file.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kObjectBytes = kGiB;
constexpr double kWarmRssMibMax = 512;

void measure(const ReadPattern& pattern, CacheBenchSetup& setup, const ObjectVersion& object,
             const File& plain, const BenchOptions& options) {
  const Contender ours{.name = "cache_warm_" + pattern.name, .run = [&] {
                         return run_readers(pattern, kObjectBytes, options.seconds, [&] {
                           return [&, context = run_context()](std::uint64_t at) {
                             const Slice data =
                                 read_now(setup.cache(), context, object, {at, pattern.read_bytes});
                             if (data.size() != pattern.read_bytes)
                               give_up({StatusCode::kInternal, "short read"});
                           };
                         });
                       }};
  const Contender peer{
      .name = "pread", .run = [&] {
        return run_readers(pattern, kObjectBytes, options.seconds, [&] {
          return [&, buffer = std::make_shared<Buffer>(Buffer::allocate(pattern.read_bytes))](
                     std::uint64_t at) {
            if (require(plain.read_at(at, buffer->bytes())) != pattern.read_bytes) {
              give_up({StatusCode::kInternal, "short read"});
            }
          };
        });
      }};
  const Unit unit = pattern.count_requests ? requests_unit() : bytes_unit();
  if (options.ours_only) return run_alone(ours, options.rounds, unit);
  const Comparison comparison = compare(ours, {peer}, options.rounds);
  report({.bench = ours.name,
          .value = comparison.rate() / unit.per_rate,
          .unit = unit.rate,
          .ratio = comparison.rate_ratio(),
          .against = "pread of a plain file",
          .goal = Goal{Goal::Kind::kAtLeast, pattern.goal},
          .cpu_s = comparison.cpu_s(),
          .rss_mib = comparison.rss_mib_max(),
          .rss_mib_max = kWarmRssMibMax},
         comparison, unit);
}

File write_plain(const std::string& path) {
  File file = require(File::open(path, O_RDWR | O_CREAT | O_TRUNC));
  Buffer piece = Buffer::allocate(kMiB);
  for (std::uint64_t at = 0; at < kObjectBytes; at += piece.size()) {
    GeneratedStore::generate(at, piece.bytes());
    require(file.write_at(at, piece.bytes()));
  }
  return file;
}

void run(const BenchOptions& options) {
  const ScratchDirectory scratch(ScratchDirectory::Kind::kDisk);
  CacheBenchSetup setup({.directory = scratch.path() + "/cache"});
  setup.add_store(std::make_shared<GeneratedStore>(setup.pool()));
  const ObjectVersion object =
      CacheBenchSetup::object("object", std::string(GeneratedStore::kIdentity), kObjectBytes);
  require(setup.cache().warm(run_context(), object, {0, kObjectBytes}, Urgency::kDemanded));
  // Both in the page cache: the first by reading it, since it was written past that.
  for (std::uint64_t at = 0; at < kObjectBytes; at += kMiB)
    (void)read_now(setup.cache(), run_context(), object, {at, kMiB});
  const File plain = write_plain(scratch.path() + "/plain");
  for (const ReadPattern& pattern : {ReadPattern{"1m_sequential", kMiB, true, 0.9, false},
                                     ReadPattern{"128k_random", 128 * kKiB, false, 0.9, false},
                                     ReadPattern{"4k_random", 4 * kKiB, false, 0.7, true}}) {
    measure(pattern, setup, object, plain, options);
  }
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.seconds = 1, .rounds = 5});
  return run_bench("cache_warm", [&] { run(options); });
}
