#include "cli/run_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "platform/spawn.h"

namespace millrace::cli {
namespace {

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? kExitSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

// What the program writes to its standard output, up to `bytes_max`; empty when it fails.
std::string output_of(const std::vector<std::string>& command, std::size_t bytes_max) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int error = spawn(command, {.variables = {}, .actions = &actions}, pid);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text(bytes_max, '\0');
  std::size_t length = 0;
  while (error == 0 && length < bytes_max) {
    const ssize_t n = ::read(ends[0], text.data() + length, bytes_max - length);
    if (n == 0 || (n < 0 && errno != EINTR)) break;
    if (n > 0) length += static_cast<std::size_t>(n);
  }
  ::close(ends[0]);
  if (error != 0) return "";
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  text.resize(length);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : "";
}

}  // namespace

Result<RunProcess> RunProcess::start(const std::vector<std::string>& command,
                                     const std::map<std::string, std::string>& variables) {
  pid_t pid = -1;
  const int error = spawn(command, {.variables = variables}, pid);
  if (error == 0) return RunProcess(pid);
  const StatusCode code = error == ENOENT   ? StatusCode::kNotFound
                          : error == EACCES ? StatusCode::kPermissionDenied
                                            : StatusCode::kIoError;
  return failure(code, fmt::format("could not start '{}': {}", command.front(),
                                   std::generic_category().message(error)));
}

int RunProcess::wait(Interrupt& interrupt) {
  interrupt.pass_on_to(pid_);
  // Not reaped yet: its number stays its own until nothing is passed on any more.
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  interrupt.pass_on_to(0);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  return exit_code_of(status);
}

std::string working_directory_commit() {
  std::string text = output_of({"git", "rev-parse", "HEAD"}, 128);
  while (text.ends_with('\n'))
    text.pop_back();
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return std::ranges::all_of(text, is_digit) ? text : "";
}

}  // namespace millrace::cli
