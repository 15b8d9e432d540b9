#include "bench/mount_peers.h"

#include <sys/mount.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "bench/peer_process.h"
#include "bench/process_usage.h"
#include "bench/upload_peers.h"

namespace millrace::bench {
namespace {

bool is_mounted(const std::string& directory) {
  std::ifstream mounts("/proc/mounts");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" " + directory + " fuse") != std::string::npos) return true;
  }
  return false;
}

std::vector<std::string> s3fs_command(const BenchTarget& target, const std::string& root,
                                      const std::string& mount_point) {
  const std::string password_file = root + "/password";
  std::ofstream(password_file) << target.access_key << ":" << target.secret_key << "\n";
  std::filesystem::permissions(
      password_file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  return {require_program("s3fs"),
          target.bucket,
          mount_point,
          "-f",
          "-o",
          "passwd_file=" + password_file,
          "-o",
          "url=" + target.endpoint,
          "-o",
          "use_path_request_style,ro,kernel_cache,max_background=1000",
          "-o",
          fmt::format("use_cache={}/cache", root),
          "-o",
          "multireq_max=64,parallel_count=30,multipart_size=16",
          "-o",
          "max_stat_cache_size=1000000,stat_cache_expire=3600"};
}

std::vector<std::string> rclone_mount_command(const BenchTarget& target, const std::string& root,
                                              const std::string& mount_point) {
  std::vector<std::string> command = rclone_command(target);
  command.insert(command.end(),
                 {"mount", "--read-only", "--vfs-cache-mode=full", "--cache-dir=" + root + "/cache",
                  "--vfs-cache-max-age=24h", "--dir-cache-time=24h", "--attr-timeout=1h",
                  "--no-modtime", "--vfs-fast-fingerprint", "--buffer-size=64M",
                  "--vfs-read-ahead=256M", "--vfs-read-chunk-size=64M", "--max-read-ahead=1M",
                  "--transfers=32", "store:" + target.bucket, mount_point});
  return command;
}

}  // namespace

std::string PeerMount::name(Program program) {
  return program == Program::kS3fs ? "s3fs" : "rclone mount";
}

PeerMount::PeerMount(Program program, const BenchTarget& target, const std::string& root)
    : mount_point_(root + "/mnt") {
  std::filesystem::create_directories(mount_point_);
  std::filesystem::create_directories(root + "/cache");
  const std::vector<std::string> command = program == Program::kS3fs
                                               ? s3fs_command(target, root, mount_point_)
                                               : rclone_mount_command(target, root, mount_point_);
  process_ = std::make_unique<millrace::testing::ChildProcess>(
      command, millrace::testing::ChildOptions{.output_file = root + "/log", .environment = {}});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!is_mounted(mount_point_)) {
    if (!process_->running() || std::chrono::steady_clock::now() > deadline) {
      std::ostringstream log;
      log << std::ifstream(root + "/log").rdbuf();
      throw std::runtime_error(fmt::format("{} did not mount: {}", name(program), log.str()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

PeerMount::~PeerMount() {
  // A reader that gave up may still have a file open.
  ::umount2(mount_point_.c_str(), MNT_DETACH);
  process_->stop();
}

double PeerMount::cpu_s() const { return process_cpu_s(process_->pid()); }

}  // namespace millrace::bench
