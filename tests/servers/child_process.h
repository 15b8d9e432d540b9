#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace millrace::testing {

struct ChildOptions {
  std::string output_file;  // Takes stdout and stderr; empty: inherited.
  std::vector<std::pair<std::string, std::string>> environment;  // Added to ours.
  // SIGTERM to the child when the thread that started it ends. Off for a launcher whose own
  // children shall outlive that thread.
  bool die_with_parent = true;
  // Numbers that it must not get, for those who tell processes apart by them: on a busy machine
  // they come round within a minute.
  const std::set<pid_t>* pids_refused = nullptr;
};

// A program that we started. It leads a process group of its own, so that a Ctrl-C at the terminal
// reaches only us and we decide the order of the end.
//
// Lifecycle: runs from construction, which throws std::system_error when the program cannot be
// started; destruction stops it. Not safe for use by two threads at once.
class ChildProcess {
 public:
  explicit ChildProcess(const std::vector<std::string>& command, const ChildOptions& options = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // The exit status as a shell has it (128 + signal for a death by signal) once the child has
  // ended, or nothing when the timeout passes first.
  std::optional<int> wait(std::chrono::milliseconds timeout);
  bool running() { return !wait(std::chrono::milliseconds(0)).has_value(); }

  // Sends a signal to the child alone; nothing once it has ended.
  void signal(int number);

  // SIGTERM, then SIGKILL to the whole group when the child is still there after the grace.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(5));

 private:
  int start(const std::vector<std::string>& command, const ChildOptions& options, int output_fd);

  pid_t pid_ = -1;
  std::optional<int> status_;
};

// Runs a command to its end. Returns its status and what it wrote to stdout and stderr together;
// a command that outlives the timeout is killed and has status 124.
struct CommandResult {
  int status = 0;
  std::string output;
};
CommandResult run_command(const std::vector<std::string>& command, const ChildOptions& options = {},
                          std::chrono::milliseconds timeout = std::chrono::seconds(60));

}  // namespace millrace::testing
