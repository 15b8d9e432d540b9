#include "bench/upload_peers.h"

#include <atomic>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "bench/bench_objects.h"
#include "bench/client_usage.h"
#include "bench/curl_peer.h"
#include "bench/peer_process.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kPartBytes = 16 * kMiB;
constexpr std::uint64_t kClientPoolBytes = 64 * kMiB;

void write_upload_config(const std::string& file, const BenchTarget& target,
                         const std::string& source, const RawUpload& upload, std::size_t process,
                         std::size_t processes) {
  std::ofstream out(file);
  const char* between = "";
  for (std::size_t n = process; n < upload.objects; n += processes) {
    out << between << "url = \"" << target.url_of(fmt::format("raw-{:05}", n)) << "\"\n"
        << "upload-file = \"" << source << "\"\noutput = /dev/null\nfail\nnoproxy = \"*\"\n"
        << curl_signing_lines(target);
    between = "next\n";
  }
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
}

}  // namespace

RunFigures put_by_curl(const BenchTarget& target, const RawUpload& upload, std::size_t processes,
                       const std::string& scratch) {
  const BenchObjects objects = write_files(scratch, 1, upload.object_bytes, kMiB);
  std::vector<std::vector<std::string>> commands;
  for (std::size_t process = 0; process < processes; ++process) {
    const std::string config = fmt::format("{}/curl-{}.config", scratch, process);
    write_upload_config(config, target, scratch + "/" + objects.keys.front(), upload, process,
                        processes);
    commands.push_back({require_program("curl"), "--disable", "-sS", "--no-progress-meter", "-Z",
                        "--parallel-immediate", "--parallel-max",
                        fmt::format("{}", upload.in_flight / processes), "-K", config});
  }
  PeerRun run = run_peer(commands, scratch);
  run.figures.amount = static_cast<double>(upload.bytes());
  return run.figures;
}

RunFigures put_by_client(const BenchTarget& target, const RawUpload& upload, std::size_t loops) {
  Buffer part = Buffer::allocate(kPartBytes);
  for (std::size_t at = 0; at < part.size(); at += sizeof(std::uint64_t))
    part.data()[at] = static_cast<std::byte>(at / sizeof(std::uint64_t));
  const Slice bytes = std::move(part).freeze();
  BenchStore client(target, loops, kClientPoolBytes);
  const RequestContext context = run_context();
  const ClientUsage usage;
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> stored = 0;
  std::vector<std::jthread> threads;
  for (std::size_t thread = 0; thread < upload.in_flight; ++thread) {
    threads.emplace_back([&] {
      for (std::size_t n = next++; n < upload.objects; n = next++) {
        auto started = client.store().start_upload(
            context, ObjectKey(fmt::format("raw-{:05}", n)),
            {.condition = {}, .metadata = {}, .size_hint = upload.object_bytes});
        if (!started) return;
        for (std::uint64_t at = 0; at < upload.object_bytes; at += kPartBytes) {
          if (!(*started)->write(context, bytes).ok()) return;
        }
        if ((*started)->finish(context)) ++stored;
      }
    });
  }
  threads.clear();
  if (stored != upload.objects) {
    give_up({StatusCode::kInternal,
             fmt::format("{} of {} objects were stored", stored.load(), upload.objects)});
  }
  return usage.figures(static_cast<double>(upload.bytes()));
}

std::vector<std::string> aws_copy_command(const BenchTarget& target) {
  std::vector<std::string> command = {"env",
                                      "-u",
                                      "AWS_CA_BUNDLE",
                                      "-u",
                                      "AWS_PROFILE",
                                      "AWS_CONFIG_FILE=/dev/null",
                                      "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
                                      "AWS_DEFAULT_REGION=us-east-1",
                                      "AWS_ACCESS_KEY_ID=" + target.access_key,
                                      "AWS_SECRET_ACCESS_KEY=" + target.secret_key};
  if (!target.ca_file.empty()) command.push_back("AWS_CA_BUNDLE=" + target.ca_file);
  command.insert(command.end(),
                 {require_program("aws"), "s3", "cp", "--endpoint-url", target.endpoint});
  return command;
}

RunFigures copy_by_aws(const BenchTarget& target, const std::string& directory, std::uint64_t files,
                       const std::string& scratch) {
  std::vector<std::string> command = aws_copy_command(target);
  command.insert(command.end(), {"--recursive", "--only-show-errors", directory,
                                 "s3://" + target.bucket + "/aws"});
  PeerRun run = run_peer({command}, scratch);
  run.figures.amount = static_cast<double>(files);
  return run.figures;
}

std::vector<std::string> rclone_command(const BenchTarget& target) {
  std::vector<std::string> command = {"env",
                                      "-u",
                                      "AWS_CA_BUNDLE",
                                      "RCLONE_CONFIG=/dev/null",
                                      "RCLONE_CONFIG_STORE_TYPE=s3",
                                      "RCLONE_CONFIG_STORE_PROVIDER=Ceph",
                                      "RCLONE_CONFIG_STORE_ENDPOINT=" + target.endpoint,
                                      "RCLONE_CONFIG_STORE_ACCESS_KEY_ID=" + target.access_key,
                                      "RCLONE_CONFIG_STORE_SECRET_ACCESS_KEY=" + target.secret_key};
  if (!target.ca_file.empty()) command.push_back("RCLONE_CA_CERT=" + target.ca_file);
  command.push_back(require_program("rclone"));
  return command;
}

RunFigures copy_by_rclone(const BenchTarget& target, const std::string& directory,
                          std::uint64_t files, const std::string& scratch) {
  std::vector<std::string> command = rclone_command(target);
  command.insert(command.end(), {"copy", "--quiet", "--transfers=32", "--checkers=32",
                                 "--no-check-dest", "--s3-no-check-bucket", "--s3-no-head",
                                 directory, "store:" + target.bucket + "/rclone"});
  PeerRun run = run_peer({command}, scratch);
  run.figures.amount = static_cast<double>(files);
  return run.figures;
}

}  // namespace millrace::bench
