// How long a reader of a mount waits when its daemon is killed: the longest time between two reads
// of one who reads all the time, past the page cache, by way of the daemon. Nothing starts the next
// daemon but the keeper.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/bytes.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/mounted_home.h"
#include "bench/scratch_directory.h"
#include "bench/served_tree.h"
#include "bench/steady_reader.h"
#include "platform/file.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kFileBytes = 64 * kMiB;
constexpr double kStallSecondsMax = 1;
constexpr std::size_t kAlignment = 4096;

// Any failure ends the benchmark: a reader is to see nothing of a kill but that it takes longer.
SteadyReader::ReadNext direct_reads(const std::string& path) {
  auto file = std::make_shared<File>(File::open(path, O_RDONLY | O_DIRECT).value());
  const std::shared_ptr<void> buffer(std::aligned_alloc(kAlignment, kMiB), std::free);
  return [file, buffer](std::uint64_t number) {
    const std::uint64_t place = number % (kFileBytes / kMiB) * kMiB;
    const ssize_t got = ::pread(file->descriptor(), buffer.get(), kMiB, static_cast<off_t>(place));
    if (got != static_cast<ssize_t>(kMiB)) throw std::logic_error("a read failed");
  };
}

void run(const BenchOptions& options) {
  const ScratchDirectory scratch(ScratchDirectory::Kind::kDisk);
  std::filesystem::create_directories(scratch.path() + "/tree");
  write_generated(scratch.path() + "/tree/large", kFileBytes);
  MountedHome home(scratch.path() + "/home");
  home.millrace("publish " + scratch.path() + "/tree large@v1");
  home.mount("large@v1 --opening stateless");
  report_stalls(
      "mount_restart", options.rounds, kStallSecondsMax,
      [&home] { return direct_reads(home.mount_point() + "/large"); },
      [&home] { ::kill(home.daemon(), SIGKILL); });
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.rounds = 9});
  return run_bench("mount_restart", [&] { run(options); });
}
