#include "bench/peer_process.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/servers/child_process.h"

namespace millrace::bench {
namespace {

namespace fs = std::filesystem;
using millrace::testing::ChildOptions;
using millrace::testing::ChildProcess;

// `timeout` comes first, so that a peer that hangs ends the benchmark with a sentence.
constexpr const char* kTimeLimit = "120";
constexpr int kTimedOut = 124;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

std::string contents(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// Waits without polling, which would add milliseconds to the peer's time. The usage includes
// children that the process waited for itself, so `timeout` and `env` in front do not hide it.
int wait_with_usage(pid_t pid, rusage& usage) {
  int status = 0;
  while (::wait4(pid, &status, 0, &usage) < 0) {
    if (errno != EINTR) throw std::runtime_error(fmt::format("wait4: {}", std::strerror(errno)));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

PeerRun run_peer(const std::vector<std::vector<std::string>>& commands,
                 const std::string& scratch_directory) {
  ChildOptions options;
  options.output_file = scratch_directory + "/peer.out";
  fs::remove(options.output_file);
  PeerRun run;
  int failed = 0;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (const std::vector<std::string>& command : commands) {
    std::vector<std::string> limited = {"timeout", kTimeLimit};
    limited.insert(limited.end(), command.begin(), command.end());
    children.push_back(std::make_unique<ChildProcess>(limited, options));
  }
  for (const auto& child : children) {
    rusage usage{};
    if (const int status = wait_with_usage(child->pid(), usage); status != 0) failed = status;
    run.figures.cpu_s += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  run.figures.seconds = elapsed.count();
  run.output = contents(options.output_file);
  if (failed != 0) {
    throw std::runtime_error(fmt::format(
        "{} {}: {}", commands.front().front(),
        failed == kTimedOut ? "took over two minutes" : fmt::format("failed with {}", failed),
        run.output.substr(0, 2000)));
  }
  return run;
}

std::string require_program(std::string_view name) {
  std::string path = "/usr/bin";
  if (const char* variable = getenv("PATH"); variable != nullptr)
    path += fmt::format(":{}", variable);
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string program = fmt::format("{}/{}", folder, name);
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  throw std::runtime_error(fmt::format("{} is not installed; `make setup` installs it", name));
}

}  // namespace millrace::bench
