#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace millrace {

struct SpawnOptions {
  // Added to the environment.
  std::map<std::string, std::string> variables = {};
  // What becomes of its descriptors; null: it has ours. Borrowed.
  const posix_spawn_file_actions_t* actions = nullptr;
  // Away from our terminal and our process group, so that it outlives us.
  bool new_session = false;
};

// Starts a program, looked up in PATH, the way a shell would: we block the signals that end us and
// ignore SIGPIPE, and a child would inherit both. The error number, 0 for success.
int spawn(std::vector<std::string> command, const SpawnOptions& options, pid_t& pid);

}  // namespace millrace
