#include <pthread.h>
#include <signal.h>

#include <fstream>
#include <memory>

#include "cli/command.h"
#include "cli/session.h"
#include "frontends/fuse/keeper_process.h"

namespace millrace::cli {
namespace {

struct KeeperFlags {
  std::string socket;
  std::vector<std::string> command;
};

int keep(const KeeperFlags& flags) {
  // Whoever started us had signals blocked. Ours end us as any process; hang-ups do not, since a
  // terminal that closes must not take the mounts with it.
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);
  // The last to go when memory runs out: it has next to none, and others depend on it.
  std::ofstream("/proc/self/oom_score_adj") << "-900\n";
  KeeperProcess(File::adopt(kKeeperListener, flags.socket),
                {.socket = flags.socket, .command = flags.command})
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
  command->add_option("command", flags->command, "What starts a daemon")->type_name("COMMAND");
  line.runs(command, [flags](Session&) -> Result<int> { return keep(*flags); });
}

}  // namespace millrace::cli
