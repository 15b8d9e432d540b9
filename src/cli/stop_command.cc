#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/control_client.h"
#include "platform/file.h"

namespace millrace::cli {
namespace {

// Waits for the end of a process that is not our child.
Status wait_for_end(Session& session, const RequestContext& context, pid_t pid) {
  const File process = File::adopt(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)), "process");
  if (!process.is_open()) return {};  // It has ended.
  std::array<pollfd, 2> entries = {
      {{process.descriptor(), POLLIN, 0}, {session.interrupt().fd(), POLLIN, 0}}};
  while (entries[0].revents == 0) {
    MR_RETURN_IF_ERROR(context.check(session.clock())
                           .with_context(fmt::format("process {} has not ended yet", pid)));
    constexpr int kLookAtDeadlineMs = 200;
    (void)::poll(entries.data(), entries.size(), kLookAtDeadlineMs);
  }
  return {};
}

Result<int> stop_daemon(Session& session) {
  const RequestContext context = session.request();
  ControlClient client(session);
  MR_ASSIGN_OR_RETURN(const Json answer, client.send(context, HttpMethod::kPost, "/v1/stop"));
  const pid_t pid = answer.value("pid", 0);
  // The next one can start only when this one has let go of the cache, which it does last.
  MR_RETURN_IF_ERROR(wait_for_end(session, context, pid));
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document({{"stopped", true}, {"pid", pid}}));
  } else {
    session.note(fmt::format("stopped process {}", pid));
  }
  return 0;
}

}  // namespace

void register_stop(CommandLine& line, CLI::App& root) {
  CLI::App* const command = root.add_subcommand(
      "stop", "Stop the daemon of this machine, once its requests under way have ended");
  line.runs(command, stop_daemon);
}

}  // namespace millrace::cli
