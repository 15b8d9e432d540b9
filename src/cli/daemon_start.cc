#include "cli/daemon_start.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "app/environment.h"
#include "cli/control_client.h"
#include "cli/daemon_settings.h"
#include "cli/serve_log.h"
#include "platform/file.h"
#include "platform/path.h"
#include "platform/posix_disk.h"
#include "platform/process.h"
#include "platform/spawn.h"

namespace millrace::cli {
namespace {

// The store may need most of it to be found out of reach.
constexpr Duration kStartMax = std::chrono::seconds(60);
constexpr Duration kLookAgain = std::chrono::milliseconds(2);
constexpr std::uint64_t kLogTailBytes = 2048;

enum class Presence { kReady, kListens, kStarting, kNone };

Result<Presence> daemon_presence(Session& session, const RequestContext& context) {
  const auto answer = ControlClient(session).send(context, HttpMethod::kGet, "/readyz");
  if (answer) return answer->value("ready", false) ? Presence::kReady : Presence::kListens;
  if (ControlClient::is_no_daemon(answer.error())) return Presence::kNone;
  // It may be about to end, or to begin.
  if (answer.error().code() == StatusCode::kUnavailable) return Presence::kStarting;
  return failure(answer.error());
}

bool is_up(Presence presence, DaemonUp up) {
  return presence == Presence::kReady ||
         (presence == Presence::kListens && up == DaemonUp::kListens);
}

// The daemon of this command's settings: what the flags said is said again.
std::vector<std::string> daemon_command(const Session& session) {
  std::vector<std::string> command = {"/proc/self/exe", "serve"};
  const LoadedSettings& loaded = session.loaded();
  if (!loaded.config_file.empty()) command.insert(command.end(), {"--config", loaded.config_file});
  for (const SettingOrigin& origin : loaded.origins) {
    if (origin.source != SettingSource::kFlag) continue;
    command.insert(command.end(), {std::string(origin.spec->flag), origin.text});
  }
  return command;
}

// A daemon on its way up, and the log that it writes.
class StartingDaemon {
 public:
  static Result<StartingDaemon> start(Session& session, const std::string& log_path) {
    // A log whose end cannot be kept keeps no daemon from starting.
    if (const Status bounded = bound_serve_log(log_path); !bounded.ok()) {
      session.note("the end of the daemon's old log cannot be kept: " + bounded.message());
    }
    MR_ASSIGN_OR_RETURN(const File log, File::open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600));
    MR_ASSIGN_OR_RETURN(const std::uint64_t log_begin, log.size());
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, log.descriptor(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, log.descriptor(), STDERR_FILENO);
    pid_t pid = -1;
    const int error = spawn(daemon_command(session),
                            {.variables = {}, .actions = &actions, .new_session = true}, pid);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
      return failure(StatusCode::kIoError, fmt::format("cannot start a daemon: {}",
                                                       std::system_category().message(error)));
    }
    return StartingDaemon(pid, log_path, log_begin);
  }

  // It is our child until we end; then it is the system's.
  bool ended() const { return ::waitpid(pid_, nullptr, WNOHANG) != 0; }

  Status failure_of(std::string_view what) const {
    std::string tail(kLogTailBytes, '\0');
    std::size_t size = 0;
    if (const auto log = File::open(log_path_, O_RDONLY)) {
      const std::uint64_t end = log->size().value_or(log_begin_);
      // Its beginning may have been moved away meanwhile.
      const std::uint64_t begin =
          std::max(std::min(log_begin_, end), end - std::min<std::uint64_t>(end, kLogTailBytes));
      MutableByteView into = std::as_writable_bytes(std::span(tail));
      size = log->read_at(begin, into).value_or(0);
    }
    tail.resize(size);
    while (tail.ends_with('\n'))
      tail.pop_back();
    return {StatusCode::kInternal,
            fmt::format("the daemon {}; {} ends with: {}", what, log_path_, tail)};
  }

 private:
  StartingDaemon(pid_t pid, std::string log_path, std::uint64_t log_begin)
      : pid_(pid), log_path_(std::move(log_path)), log_begin_(log_begin) {}

  pid_t pid_;
  std::string log_path_;
  std::uint64_t log_begin_;
};

Status look_again_later(Session& session, const RequestContext& context) {
  session.clock().sleep_until(session.clock().now() + kLookAgain, &context.cancellation());
  return context.check(session.clock());
}

// With the right to start one.
Status start_and_wait(Session& session, const RequestContext& context, const std::string& log_path,
                      DaemonUp up) {
  MR_ASSIGN_OR_RETURN(const StartingDaemon daemon, StartingDaemon::start(session, log_path));
  session.note("starting a daemon in the background ('millrace stop' ends it)");
  while (true) {
    MR_ASSIGN_OR_RETURN(const Presence presence, daemon_presence(session, context));
    if (is_up(presence, up)) return {};
    if (daemon.ended()) return daemon.failure_of("ended while it started");
    const Status status = look_again_later(session, context);
    if (status == StatusCode::kDeadlineExceeded) {
      return daemon.failure_of(fmt::format("is not ready after {}", format_duration(kStartMax)));
    }
    MR_RETURN_IF_ERROR(status);
  }
}

}  // namespace

Status ensure_daemon(Session& session, DaemonUp up) {
  const RequestContext context = session.context().with_deadline(session.clock().now() + kStartMax);
  const std::string directory = user_directories(session.environment()).data;
  PosixDisk disk;
  while (true) {
    MR_ASSIGN_OR_RETURN(const Presence presence, daemon_presence(session, context));
    if (is_up(presence, up)) return check_daemon_settings(session, context);
    if (presence == Presence::kNone) {
      MR_RETURN_IF_ERROR(disk.make_directories(directory));
      const auto right =
          disk.lock(join_path(directory, "serve.start"), describe_this_process("millrace"));
      if (right) return start_and_wait(session, context, serve_log_path(session.environment()), up);
      // Somebody else starts one just now.
      if (right.error().code() != StatusCode::kConflict) return right.error();
    }
    MR_RETURN_IF_ERROR(look_again_later(session, context));
  }
}

}  // namespace millrace::cli
