#include "bench/mounted_home.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/process_usage.h"

namespace millrace::bench {

MountedHome::MountedHome(std::string root)
    : MountedHome(root, fmt::format("file://{}/store", root), "") {
  std::filesystem::create_directories(root_ + "/store");
}

MountedHome::MountedHome(std::string root, const BenchTarget& target)
    : MountedHome(std::move(root),
                  fmt::format("s3://{}?endpoint={}", target.bucket, target.endpoint),
                  fmt::format("AWS_ACCESS_KEY_ID={} AWS_SECRET_ACCESS_KEY={}", target.access_key,
                              target.secret_key)) {}

MountedHome::MountedHome(std::string root, std::string store, std::string environment)
    : root_(std::move(root)),
      environment_(fmt::format("HOME={0} MILLRACE_STORE='{1}' MILLRACE_CACHE={0}/cache "
                               "MILLRACE_SOCKET={0}/m.sock {2}",
                               root_, store, environment)) {
  std::filesystem::create_directories(mount_point());
}

MountedHome::~MountedHome() {
  if (mounted_) run("umount " + mount_point(), root_ + "/log");
  run("stop", root_ + "/log");
}

bool MountedHome::run(const std::string& arguments, const std::string& output) const {
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().string() + "/millrace";
  return std::system(fmt::format("{} {} {} >> {} 2>> {}/log", environment_, program, arguments,
                                 output, root_)
                         .c_str()) == 0;
}

void MountedHome::millrace(const std::string& arguments) const {
  if (!run(arguments, root_ + "/log")) {
    std::ifstream log(root_ + "/log");
    std::stringstream words;
    words << log.rdbuf();
    throw std::runtime_error(fmt::format("'millrace {}' failed: {}", arguments, words.str()));
  }
}

void MountedHome::mount(const std::string& arguments, bool cold) {
  if (cold) {
    unmount();
    run("stop", root_ + "/log");
    std::filesystem::remove_all(root_ + "/cache");
  }
  millrace(fmt::format("mount {} {}", arguments, mount_point()));
  mounted_ = true;
}

void MountedHome::unmount() {
  if (std::exchange(mounted_, false)) millrace("umount " + mount_point());
}

pid_t MountedHome::daemon() const {
  const std::string path = root_ + "/status";
  std::filesystem::remove(path);
  if (!run("status --json", path)) throw std::runtime_error("the daemon is gone");
  std::ifstream text(path);
  return nlohmann::json::parse(text).at("pid").get<pid_t>();
}

double MountedHome::cpu_s() const { return process_cpu_s(daemon()); }

double MountedHome::rss_mib_max() const { return process_rss_mib_max(daemon()); }

}  // namespace millrace::bench
