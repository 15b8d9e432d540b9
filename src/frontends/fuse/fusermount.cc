#include "frontends/fuse/fusermount.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "frontends/fuse/fuse_mount.h"
#include "platform/file_error.h"
#include "platform/passed_files.h"

namespace millrace {
namespace {

constexpr const char* kProgram = "fusermount3";
constexpr int kNotInstalled = 127;

struct Outcome {
  int exit = 0;
  std::string message;
};

Status cannot_start(int error) { return file_error(error, "start", kProgram); }

// Starts the program with `descriptor` as the way back, and waits for it to end.
Result<Outcome> run(const std::vector<std::string>& arguments, int descriptor) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return failure(cannot_start(errno));
  const File from = File::adopt(pipe[0], "pipe");
  File to = File::adopt(pipe[1], "pipe");
  std::vector<char*> argv;
  for (const std::string& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::string number = std::to_string(descriptor);
  const pid_t child = ::fork();
  if (child < 0) return failure(cannot_start(errno));
  if (child == 0) {
    if (descriptor >= 0) {
      ::fcntl(descriptor, F_SETFD, 0);
      ::setenv("_FUSE_COMMFD", number.c_str(), 1);
    }
    ::dup2(to.descriptor(), STDERR_FILENO);
    ::execvp(kProgram, argv.data());
    ::_exit(kNotInstalled);
  }
  to.close();
  Outcome outcome;
  char buffer[512];
  for (ssize_t got = 0; (got = ::read(from.descriptor(), buffer, sizeof(buffer))) > 0;)
    outcome.message.append(buffer, static_cast<std::size_t>(got));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  while (outcome.message.ends_with('\n'))
    outcome.message.pop_back();
  return outcome;
}

Status check(const Outcome& outcome) {
  if (outcome.exit == 0) return {};
  if (outcome.exit == kNotInstalled) {
    return {StatusCode::kUnsupported,
            "mounting without being root needs fusermount3: install the package fuse3"};
  }
  const std::string said = outcome.message.empty()
                               ? fmt::format("{} ended with {}", kProgram, outcome.exit)
                               : outcome.message;
  return {StatusCode::kPermissionDenied,
          said + "; check the rights of this user on the directory, and /etc/fuse.conf"};
}

}  // namespace

Result<File> fusermount(const std::string& directory, const std::string& options) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return failure(cannot_start(errno));
  }
  File ours = File::adopt(sockets[0], "socket to fusermount3");
  File theirs = File::adopt(sockets[1], "socket of fusermount3");
  MR_ASSIGN_OR_RETURN(const Outcome outcome,
                      run({kProgram, "-o", options, "--", directory}, theirs.descriptor()));
  MR_RETURN_IF_ERROR(check(outcome));
  theirs.close();
  Result<PassedMessage> message = receive_files(ours.descriptor(), 1);
  if (message && message->files.size() == 1) return std::move(message->files.front());
  // As by a process that may open no more files: nobody will ever serve it. With both sockets
  // closed it can have the pipe that unmounting takes.
  ours.close();
  static_cast<void>(fusermount_unmount(directory, true));
  if (!message) return failure(std::move(message).error());
  return failure(StatusCode::kInternal, "fusermount3 mounted, and passed no device");
}

Status fusermount_unmount(const std::string& directory, bool lazy) {
  MR_ASSIGN_OR_RETURN(const Outcome outcome, run({kProgram, lazy ? "-uz" : "-u", directory}, -1));
  // It has one exit code for all, and its words are never translated.
  if (outcome.message.contains("busy")) return mount_in_use(directory);
  if (outcome.message.contains("not found in")) return nothing_mounted(directory);
  return check(outcome);
}

bool users_may_allow_other() {
  std::ifstream file("/etc/fuse.conf");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("user_allow_other")) return true;
  }
  return false;
}

}  // namespace millrace
