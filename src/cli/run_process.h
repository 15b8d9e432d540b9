#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/interrupt.h"

namespace millrace::cli {

// The command of a run, as a child of this process, in its process group and with its streams.
//
// Lifecycle: start, then wait once. Needs one thread at a time.
class RunProcess {
 public:
  // Looks the program up in PATH. `variables` are added to the environment. kNotFound or
  // kPermissionDenied when there is no such program.
  static Result<RunProcess> start(const std::vector<std::string>& command,
                                  const std::map<std::string, std::string>& variables);

  // Blocks until the child has ended. Its exit code, or 128 and the number of the signal that
  // ended it. Signals that would end this process are passed on to it meanwhile.
  int wait(Interrupt& interrupt);

 private:
  explicit RunProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

// The commit that is checked out in the working directory; empty where there is none, or no git.
std::string working_directory_commit();

}  // namespace millrace::cli
