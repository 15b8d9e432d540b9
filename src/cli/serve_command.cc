#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <memory>

#include <fmt/format.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/daemon_start.h"
#include "cli/serve_log.h"
#include "cli/session.h"
#include "daemon/daemon.h"
#include "daemon/fuse_front_end.h"
#include "daemon/loader_front_end.h"
#include "daemon/nfs_front_end.h"
#include "daemon/settings_check.h"
#include "platform/file.h"
#include "platform/process.h"

namespace millrace::cli {
namespace {

// How long requests may go on after a signal; then they are called off, and have a little longer.
constexpr Duration kDrainMax = std::chrono::seconds(10);
constexpr Duration kGrace = std::chrono::seconds(20);
// How often a daemon looks how large its log is.
constexpr int kLogLookMs = 10'000;

struct ServeOptions {
  bool check_config = false;
  bool background = false;
  bool listening = false;
};

// Hang-ups, which would end the process, as something to read. Made before other threads, which
// then leave them alone too.
File hangups() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGHUP);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return File::adopt(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK), "signals");
}

Result<int> check_config(Session& session) {
  // The settings are loaded and checked by now: what is left is what they refer to.
  MR_ASSIGN_OR_RETURN(Application* const application, session.application());
  MR_RETURN_IF_ERROR(check_settings(
      *application, session.store_is_embedded() ? MissingRoot::kCreate : MissingRoot::kRefuse));
  // A daemon starts all the same, and serves everything else.
  const Status mounts = check_mount_settings(session.settings());
  const std::string& file = session.loaded().config_file;
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document(
        {{"good", true},
         {"config_file", file.empty() ? Json(nullptr) : Json(file)},
         {"no_mounts", mounts.ok() ? Json(nullptr) : Json(mounts.message())}}));
  } else {
    MR_RETURN_IF_ERROR(session.output().line(
        file.empty() ? "the settings are good; there is no config file"
                     : fmt::format("the settings are good, with those in {}", file)));
    if (!mounts.ok()) MR_RETURN_IF_ERROR(session.output().line("but " + mounts.message()));
  }
  return 0;
}

void bound_log(const Session& session) {
  const Status bounded = bound_own_serve_log(serve_log_path(session.environment()));
  if (bounded.ok()) return;
  log_warn("the log has grown large, and cannot be emptied or its end not kept",
           {{"error", bounded.message()}});
}

// Returns when a signal asks the daemon to end. Bounds its log meanwhile.
void wait_for_signal(Session& session, const File& hangup) {
  std::array<pollfd, 2> entries = {
      {{session.interrupt().fd(), POLLIN, 0}, {hangup.descriptor(), POLLIN, 0}}};
  while (session.interrupt().signal() == 0) {
    (void)::poll(entries.data(), entries.size(), kLogLookMs);
    signalfd_siginfo info{};
    if (::read(hangup.descriptor(), &info, sizeof(info)) == sizeof(info)) {
      log_info("a hang-up is ignored: settings are read at the start only");
    }
    bound_log(session);
  }
}

Status announce(Session& session) {
  const std::string& socket = session.settings().socket;
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(
        session.output().document({{"ready", true}, {"pid", ::getpid()}, {"socket", socket}}));
  } else {
    MR_RETURN_IF_ERROR(
        session.output().line(fmt::format("ready: process {} at {}", ::getpid(), socket)));
  }
  return session.output().flush();
}

// What starts this daemon again, after a kill.
std::vector<std::string> this_command() {
  std::vector<std::string> command = {"/proc/self/exe"};
  std::string line = read_file("/proc/self/cmdline").value_or("");
  for (std::size_t begin = line.find('\0'); begin + 1 < line.size();) {
    const std::size_t end = std::min(line.find('\0', begin + 1), line.size());
    command.push_back(line.substr(begin + 1, end - begin - 1));
    begin = end;
  }
  return command;
}

Result<int> serve(Session& session, const ServeOptions& options) {
  if (options.listening && !options.background) {
    return failure(StatusCode::kInvalidArgument,
                   "--listening says when --background returns: give both, or neither");
  }
  if (options.check_config) return check_config(session);
  if (options.background) {
    MR_RETURN_IF_ERROR(
        ensure_daemon(session, options.listening ? DaemonUp::kListens : DaemonUp::kReady));
    return 0;
  }
  raise_descriptor_limit();
  const File hangup = hangups();
  // A daemon has somebody who reads its log later; a command is quiet.
  for (const SettingOrigin& origin : session.loaded().origins) {
    if (origin.spec->name == "log_level" && origin.source == SettingSource::kDefault) {
      set_log_level(LogLevel::kInfo);
    }
  }
  // Also of one that dies before it has run for long, and is started again and again.
  bound_log(session);
  MR_ASSIGN_OR_RETURN(Application* const application, session.application());
  DaemonOptions daemon_options;
  if (session.store_is_embedded()) daemon_options.missing_store = MissingRoot::kCreate;
  daemon_options.front_ends.push_back(std::make_unique<NfsFrontEnd>());
  daemon_options.front_ends.push_back(std::make_unique<LoaderFrontEnd>());
  // Last, since a start that fails after it ends the mounts that it has taken over; before it, they
  // are left to the next start. So it is also the first to stop, and a stop that is cut short
  // leaves no mounts.
  daemon_options.front_ends.push_back(std::make_unique<FuseFrontEnd>(this_command()));
  daemon_options.on_stop_request = [] { ::kill(::getpid(), SIGTERM); };
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Daemon> daemon,
                      Daemon::start(*application, std::move(daemon_options)));
  session.interrupt().expect(kGrace);
  // Whoever was to read it may be gone: of a daemon that the keeper starts again, often.
  if (const Status told = announce(session); !told.ok()) {
    log_warn("nobody can be told that the daemon is ready", {{"error", told.message()}});
  }
  wait_for_signal(session, hangup);
  log_info("stopping", {{"signal", session.interrupt().signal()}});
  daemon->stop(session.clock().now() + kDrainMax);
  return 0;
}

}  // namespace

void register_serve(CommandLine& line, CLI::App& root) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* const command = root.add_subcommand(
      "serve", "Run the daemon of this machine: it owns the cache, and serves files");
  command->add_flag("--check-config", options->check_config,
                    "Only check the settings, and what they refer to");
  command->add_flag("--background", options->background,
                    "Return when it is ready, and leave it running; nothing when one runs");
  command->add_flag("--listening", options->listening,
                    "With --background: return when it listens, before the store has answered");
  line.runs(command, [options](Session& session) { return serve(session, *options); });
}

}  // namespace millrace::cli
