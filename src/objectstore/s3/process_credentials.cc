#include "objectstore/s3/process_credentials.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/bytes.h"
#include "objectstore/s3/credentials_json.h"

namespace millrace::s3 {
namespace {

constexpr Duration kProcessTimeMax = std::chrono::minutes(1);
constexpr std::size_t kOutputBytesMax = 64 * kKiB;
// How soon a cancelled request or a silent exit is noticed.
constexpr int kLookEveryMs = 20;

// A running shell in a process group of its own, with its standard output at our end of a pipe. The
// destructor kills the whole group and reaps the shell.
class Shell {
 public:
  Shell() = default;
  ~Shell() {
    if (pid_ > 0) {
      ::kill(-pid_, SIGKILL);
      while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    if (output_ >= 0) ::close(output_);
  }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  // Returns 0 or an errno.
  int start(const std::string& command);
  int output() const { return output_; }
  // The wait status once the shell has ended. Its group is left alone from then on.
  std::optional<int> ended();

 private:
  int spawn(const std::string& command, int write_end);

  pid_t pid_ = -1;
  int output_ = -1;
};

int Shell::start(const std::string& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  output_ = ends[0];
  const int error = spawn(command, ends[1]);
  ::close(ends[1]);
  return error;
}

int Shell::spawn(const std::string& command, int write_end) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, write_end, STDOUT_FILENO);
  // A daemon ignores SIGPIPE and blocks signals on its threads: its children should not.
  sigset_t none;
  sigset_t pipe_only;
  sigemptyset(&none);
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &pipe_only);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string shell = "sh";
  std::string flag = "-c";
  std::string line = command;
  char* const arguments[] = {shell.data(), flag.data(), line.data(), nullptr};
  const int error = ::posix_spawn(&pid_, "/bin/sh", &files, &attributes, arguments, environ);
  if (error != 0) pid_ = -1;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

std::optional<int> Shell::ended() {
  int status = 0;
  const pid_t reaped = ::waitpid(pid_, &status, WNOHANG);
  if (reaped == 0 || (reaped < 0 && errno == EINTR)) return std::nullopt;
  pid_ = -1;
  return reaped < 0 ? 0 : status;  // Somebody else reaped it: the output has to speak for itself.
}

// What a look at the pipe found.
enum class Look { kNothing, kSome, kEnd, kFailed };

Look look(int fd, std::string& output) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  const int ready = ::poll(&waiting, 1, kLookEveryMs);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return Look::kNothing;
  if (ready < 0) return Look::kFailed;
  char chunk[4096];
  const ssize_t count = ::read(fd, chunk, sizeof chunk);
  if (count < 0) return errno == EINTR ? Look::kNothing : Look::kFailed;
  if (count == 0) return Look::kEnd;
  output.append(chunk, static_cast<std::size_t>(count));
  return Look::kSome;
}

// Collects the output until the shell has ended and nothing more is in the pipe. A background child
// that keeps the pipe open does not keep us.
Result<std::string> collect(const RequestContext& context, Clock& clock, Shell& shell) {
  std::string output;
  std::optional<int> status;
  bool open = true;
  while (!status || open) {
    MR_RETURN_IF_ERROR(context.check(clock));
    const bool had_ended = status.has_value();
    if (!status) status = shell.ended();
    // At the end of the output only the exit is missing; poll() then serves as the pause.
    const Look found = open ? look(shell.output(), output) : Look::kNothing;
    if (!open && !status) ::poll(nullptr, 0, 1);
    if (found == Look::kFailed) return failure(StatusCode::kIoError, std::strerror(errno));
    if (found == Look::kEnd || (found == Look::kNothing && had_ended)) open = false;
    if (output.size() > kOutputBytesMax) {
      return failure(StatusCode::kInvalidArgument, "it printed far more than credentials");
    }
  }
  if (WIFSIGNALED(*status)) {
    return failure(StatusCode::kUnauthenticated,
                   fmt::format("it was ended by signal {}", WTERMSIG(*status)));
  }
  if (WEXITSTATUS(*status) != 0) {
    return failure(StatusCode::kUnauthenticated,
                   fmt::format("it ended with exit status {}", WEXITSTATUS(*status)));
  }
  return output;
}

}  // namespace

Result<Credentials> run_credential_process(const RequestContext& context, Clock& clock,
                                           const std::string& command, const std::string& source) {
  const RequestContext limited = context.with_deadline(clock.now() + kProcessTimeMax);
  Shell shell;
  if (const int error = shell.start(command); error != 0) {
    return failure(StatusCode::kIoError,
                   fmt::format("{}: cannot start it: {}", source, std::strerror(error)));
  }
  auto output = collect(limited, clock, shell);
  if (!output) return failure(output.error().with_context(source));
  return parse_credentials_json(*output, CredentialJson::kProcess, source);
}

}  // namespace millrace::s3
