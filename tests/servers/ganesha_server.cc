#include "tests/servers/ganesha_server.h"

#include <stdlib.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "tests/servers/loopback.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGanesha = "/usr/bin/ganesha.nfsd";
constexpr auto kGaneshaStartMax = std::chrono::seconds(30);

}  // namespace

GaneshaServer::GaneshaServer(const std::string& root) {
  if (!fs::exists(kGanesha)) {
    throw std::runtime_error("nfs-ganesha is not installed; `make setup` installs it");
  }
  std::string name = "/tmp/millrace-ganesha-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error(fmt::format("{}: {}", name, std::strerror(errno)));
  }
  directory_ = name;
  fs::create_directories("/run/ganesha");  // Its place for sockets, which cannot be moved.
  port_ = free_port();
  std::ofstream(directory_ + "/conf") << fmt::format(
      R"(NFS_CORE_PARAM {{
  NFS_Port = {port}; NFS_Protocols = 4; Bind_addr = 127.0.0.1;
  Enable_NLM = false; Enable_RQUOTA = false; allow_set_io_flusher_fail = true;
}}
NFSv4 {{ Graceless = true; RecoveryRoot = {dir}; Minor_Versions = 0,1,2; }}
# Room for a directory of a million files, which its defaults have not.
MDCACHE {{ Entries_HWMark = 2000000; }}
EXPORT {{
  Export_Id = 1; Path = {root}; Pseudo = /data; Access_Type = RO; Squash = No_Root_Squash;
  SecType = sys, none; Protocols = 4; Transports = TCP; FSAL {{ Name = VFS; }}
}}
)",
      fmt::arg("port", port_), fmt::arg("dir", directory_),
      fmt::arg("root", fs::absolute(root).string()));
  if (start()) return;
  std::ostringstream said;
  said << std::ifstream(directory_ + "/log").rdbuf();
  process_.reset();
  fs::remove_all(directory_);
  throw std::runtime_error("nfs-ganesha does not start: " + said.str());
}

GaneshaServer::~GaneshaServer() {
  process_.reset();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

bool GaneshaServer::start() {
  ChildOptions options;
  options.output_file = directory_ + "/output";
  process_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{kGanesha, "-F", "-f", directory_ + "/conf", "-L",
                               directory_ + "/log", "-p", directory_ + "/pid"},
      options);
  const auto deadline = std::chrono::steady_clock::now() + kGaneshaStartMax;
  while (std::chrono::steady_clock::now() < deadline && process_->running()) {
    if (accepts_connections(port_)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

}  // namespace millrace::testing
