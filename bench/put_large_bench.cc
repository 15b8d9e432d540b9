// Put of 1 GiB by multipart against `aws s3 cp` of the same file.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "bench/bench_objects.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_store.h"
#include "bench/client_usage.h"
#include "bench/garbage_collection.h"
#include "bench/peer_process.h"
#include "bench/scratch_directory.h"
#include "bench/upload_peers.h"
#include "tests/servers/ceph_server.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kObjectBytes = kGiB;
// One buffer becomes one part without a copy.
constexpr std::uint64_t kBufferBytes = 16 * kMiB;
// Four parts on their way, one kept back by the upload, one being read.
constexpr std::uint64_t kPoolBytes = 6 * kBufferBytes;
// Memory of about 1.9 times an object each, while the one before may not be freed yet.
constexpr std::uint64_t kStoreBytes = 6 * kGiB;
const std::string kBucket = "uploads";

class SourceFile {
 public:
  explicit SourceFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error(fmt::format("{}: {}", path, std::strerror(errno)));
  }
  ~SourceFile() { ::close(fd_); }
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  // Fills the buffer from the file's position on; cut at the end of the file.
  void read(Buffer& buffer) {
    std::size_t filled = 0;
    while (filled < buffer.size()) {
      const ssize_t count = ::read(fd_, buffer.data() + filled, buffer.size() - filled);
      if (count < 0) throw std::runtime_error(fmt::format("read: {}", std::strerror(errno)));
      if (count == 0) break;
      filled += static_cast<std::size_t>(count);
    }
    buffer.truncate(filled);
  }

 private:
  int fd_;
};

class PutBench {
 public:
  PutBench(const millrace::testing::CephServer& ceph, const BenchOptions& options,
           const std::string& scratch, const BenchObjects& objects)
      : ceph_(ceph),
        options_(options),
        scratch_(scratch),
        source_(scratch + "/" + objects.keys.front()),
        target_(target_of(ceph, kBucket)) {}

  RunFigures run_ours() {
    RunFigures figures;
    {
      BenchStore client(target_, options_.loops, kPoolBytes);
      const RequestContext context = run_context();
      const ClientUsage usage;
      SourceFile file(source_);
      auto upload = require(client.store().start_upload(context, ObjectKey("ours"),
                                                        {.condition = {}, .metadata = {}}));
      while (true) {
        Buffer buffer = require(client.pool().allocate(context, kBufferBytes));
        file.read(buffer);
        if (buffer.size() == 0) break;
        require(upload->write(context, std::move(buffer).freeze()));
      }
      (void)require(upload->finish(context));
      figures = usage.figures(static_cast<double>(kObjectBytes));
    }
    settle("ours");
    return figures;
  }

  RunFigures run_aws() {
    std::vector<std::string> command = aws_copy_command(target_);
    command.insert(command.end(), {"--no-progress", source_, "s3://" + kBucket + "/aws"});
    PeerRun run = run_peer({command}, scratch_);
    run.figures.amount = static_cast<double>(kObjectBytes);
    settle("aws");
    return run.figures;
  }

 private:
  // Sees that the object is whole, removes it, and waits until the server has freed its memory,
  // which would otherwise slow the next run.
  void settle(const std::string& key) {
    BenchStore client(target_, 1, kMiB);
    const ObjectInfo info = require(client.store().head(run_context(), ObjectKey(key)));
    if (info.size != kObjectBytes) {
      throw std::runtime_error(fmt::format("{} has {} bytes in the store", key, info.size));
    }
    const std::array keys = {ObjectKey(key)};
    require(client.store().remove(run_context(), keys));
    wait_for_garbage_collection(ceph_);
  }

  const millrace::testing::CephServer& ceph_;
  const BenchOptions& options_;
  const std::string scratch_;
  const std::string source_;
  const BenchTarget target_;
};

void run(const BenchOptions& options) {
  const ScratchDirectory scratch;
  const BenchObjects objects = write_files(scratch.path(), 1, kObjectBytes, kMiB);
  millrace::testing::CephServer ceph({.store_bytes = kStoreBytes});
  ceph.create_bucket(kBucket);
  PutBench bench(ceph, options, scratch.path(), objects);
  const Contender ours{.name = "put_large_ceph", .run = [&] { return bench.run_ours(); }};
  const Unit unit = bytes_unit();
  if (options.ours_only) return run_alone(ours, options.rounds, unit);
  const Comparison comparison = compare(
      ours, {{.name = "aws s3 cp", .run = [&] { return bench.run_aws(); }}}, options.rounds);
  report({.bench = ours.name,
          .value = comparison.rate() / unit.per_rate,
          .unit = unit.rate,
          .ratio = comparison.rate_ratio(),
          .against = "aws s3 cp",
          .goal = Goal{Goal::Kind::kAtLeast, 1},
          .cpu_s = comparison.cpu_s(),
          .rss_mib = comparison.rss_mib_max()},
         comparison, unit);
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  const BenchOptions options = parse_options(argc, argv, {.rounds = 3});
  return run_bench("put_large", [&] { run(options); });
}
