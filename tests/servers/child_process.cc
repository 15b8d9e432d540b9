#include "tests/servers/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <thread>

namespace millrace::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::vector<std::string> merged_environment(const ChildOptions& options) {
  std::vector<std::string> merged;
  for (const auto& [name, value] : options.environment)
    merged.push_back(name + "=" + value);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const std::string name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& [key, value] : options.environment)
      replaced |= key == name;
    if (!replaced) merged.push_back(text);
  }
  return merged;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words)
    result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

// No errno.
constexpr int kPidRefused = -1;

// In the child between fork and exec: system calls only, since other threads of the parent may have
// held locks at the fork. Reports errno through the pipe, which exec closes.
[[noreturn]] void become(char* const* argv, char* const* envp, int output_fd, int error_fd,
                         pid_t parent, const ChildOptions& options) {
  if (options.pids_refused != nullptr && options.pids_refused->contains(getpid())) {
    (void)!::write(error_fd, &kPidRefused, sizeof kPidRefused);
    _exit(127);
  }
  (void)setpgid(0, 0);
  if (options.die_with_parent) {
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);  // It died before prctl.
  }
  sigset_t none;
  sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, nullptr);
  if (output_fd >= 0) {
    (void)dup2(output_fd, STDOUT_FILENO);
    (void)dup2(output_fd, STDERR_FILENO);
  }
  (void)execvpe(argv[0], argv, envp);
  const int error = errno;
  (void)!::write(error_fd, &error, sizeof error);
  _exit(127);
}

int shell_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const ChildOptions& options) {
  int output_fd = -1;
  if (!options.output_file.empty()) {
    output_fd =
        ::open(options.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (output_fd < 0) {
      throw std::system_error(errno, std::generic_category(), options.output_file);
    }
  }
  int error = kPidRefused;
  while (error == kPidRefused)
    error = start(command, options, output_fd);
  if (output_fd >= 0) ::close(output_fd);
  if (error != 0) {
    throw std::system_error(error, std::generic_category(), "cannot start " + command[0]);
  }
}

// Returns what kept it from running, an errno or kPidRefused; 0 once it runs.
int ChildProcess::start(const std::vector<std::string>& command, const ChildOptions& options,
                        int output_fd) {
  const auto environment = merged_environment(options);
  const auto argv = pointers(command);
  const auto envp = pointers(environment);
  std::array<int, 2> report{};
  if (::pipe2(report.data(), O_CLOEXEC) != 0) return errno;
  const pid_t parent = getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(argv.data(), envp.data(), output_fd, report[1], parent, options);
  int error = pid_ < 0 ? errno : 0;
  ::close(report[1]);
  if (pid_ > 0) (void)!::read(report[0], &error, sizeof error);
  ::close(report[0]);
  if (error != 0 && pid_ > 0) (void)::waitpid(pid_, nullptr, 0);
  return error;
}

ChildProcess::~ChildProcess() { stop(); }

std::optional<int> ChildProcess::wait(milliseconds timeout) {
  const auto deadline = steady_clock::now() + timeout;
  while (!status_) {
    int status = 0;
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) status_ = shell_status(status);
    if (ended < 0 && errno != EINTR) status_ = 127;  // Reaped by somebody else.
    if (status_ || steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return status_;
}

void ChildProcess::signal(int number) {
  if (running()) (void)::kill(pid_, number);
}

void ChildProcess::stop(milliseconds grace) {
  signal(SIGTERM);
  if (wait(grace)) return;
  (void)::kill(-pid_, SIGKILL);
  (void)wait(std::chrono::seconds(10));
}

CommandResult run_command(const std::vector<std::string>& command, const ChildOptions& options,
                          milliseconds timeout) {
  // A file, not a pipe: daemons that the command leaves behind would keep a pipe open.
  std::string name = "/tmp/millrace-output-XXXXXX";
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), name);
  ChildOptions with_output = options;
  with_output.output_file = name;
  CommandResult result;
  try {
    ChildProcess child(command, with_output);
    const auto status = child.wait(timeout);
    if (!status) child.stop(milliseconds(0));
    result.status = status.value_or(124);
  } catch (...) {
    ::close(fd);
    (void)::unlink(name.c_str());
    throw;
  }
  std::array<char, 4096> bytes;
  for (ssize_t count = 0; (count = ::read(fd, bytes.data(), bytes.size())) > 0;) {
    result.output.append(bytes.data(), static_cast<std::size_t>(count));
  }
  ::close(fd);
  (void)::unlink(name.c_str());
  return result;
}

}  // namespace millrace::testing
