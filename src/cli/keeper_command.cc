#include <pthread.h>
#include <signal.h>

#include <fstream>
#include <memory>

#include "base/units.h"
#include "cli/command.h"
#include "cli/session.h"
#include "frontends/fuse/keeper_process.h"
#include "platform/file.h"

namespace millrace::cli {
namespace {

struct KeeperFlags {
  std::string socket;
  std::string wait = "60s";
  std::vector<std::string> command;
};

Result<int> keep(const KeeperFlags& flags) {
  MR_ASSIGN_OR_RETURN(const Duration wait, parse_duration(flags.wait));
  // Whoever started us had signals blocked. Ours end us as any process; hang-ups do not, since a
  // terminal that closes must not take the mounts with it.
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);
  // The last to go when memory runs out: it has next to none, and others depend on it. That is not
  // so of the daemons that it starts.
  const std::string score = read_file(kOomScore).value_or("");
  std::ofstream(kOomScore) << "-900\n";
  KeeperProcess(File::adopt(kKeeperListener, flags.socket),
                File::adopt(kKeeperDaemon, "connection of a daemon"),
                {.socket = flags.socket,
                 .command = flags.command,
                 .alone_max = wait,
                 .daemon_oom_score = score})
      .run();
  return 0;
}

}  // namespace

void register_keeper(CommandLine& line, CLI::App& root) {
  auto flags = std::make_shared<KeeperFlags>();
  // For daemons, not for people: group "" hides it from the help.
  CLI::App* const command =
      root.add_subcommand("keeper", "Hold mounts while no daemon serves them")->group("");
  command->add_option("--socket", flags->socket, "Where it listens")->type_name("PATH")->required();
  // Daemons start it with few words, so what is said about it comes by its environment.
  command->add_option("--wait", flags->wait, "How long mounts wait for a daemon")
      ->type_name("DURATION")
      ->envname("MILLRACE_KEEPER_WAIT");
  command->add_option("command", flags->command, "What starts a daemon")->type_name("COMMAND");
  // A config file that somebody breaks must not take the mounts with it.
  line.runs_anyhow(command, [flags](Session&) { return keep(*flags); });
}

}  // namespace millrace::cli
