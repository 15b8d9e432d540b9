#include "abi/daemon_program.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "app/environment.h"
#include "base/clock.h"
#include "platform/path.h"
#include "platform/spawn.h"

namespace millrace {
namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds(1);

// Where this code was loaded from.
std::string library_directory() {
  Dl_info facts{};
  if (::dladdr(reinterpret_cast<const void*>(&start_daemon), &facts) == 0 ||
      facts.dli_fname == nullptr) {
    return {};
  }
  return std::string(parent_path(facts.dli_fname));
}

std::string find_program(const std::string& program) {
  if (!program.empty()) return program;
  if (const auto variable = process_environment()("MILLRACE_BIN")) return *variable;
  const std::string beside = library_directory();
  if (!beside.empty()) {
    for (const std::string_view name : {"millrace", "bin/millrace", "../bin/millrace"}) {
      std::string path = join_path(beside, name);
      if (::access(path.c_str(), X_OK) == 0) return path;
    }
  }
  return "millrace";
}

std::vector<std::string> background_command(const LoadedSettings& settings,
                                            const std::string& program) {
  std::vector<std::string> command = {program, "serve", "--background", "--listening", "--quiet"};
  if (!settings.config_file.empty()) {
    command.insert(command.end(), {"--config", settings.config_file});
  }
  for (const SettingOrigin& origin : settings.origins) {
    if (origin.source != SettingSource::kFlag) continue;
    command.insert(command.end(), {std::string(origin.spec->flag), origin.text});
  }
  return command;
}

}  // namespace

Status start_daemon(const RequestContext& context, const LoadedSettings& settings,
                    const std::string& program) {
  const std::string path = find_program(program);
  pid_t pid = -1;
  const int error = spawn(background_command(settings, path), {}, pid);
  if (error != 0) {
    return {StatusCode::kUnavailable, fmt::format("no daemon runs, and '{}' cannot be started: {}",
                                                  path, std::system_category().message(error))};
  }
  int how = 0;
  while (::waitpid(pid, &how, WNOHANG) == 0) {
    // It ends by itself; what it started is not ours to end.
    MR_RETURN_IF_ERROR(context.check(system_clock()));
    system_clock().sleep_until(system_clock().now() + kLookAgain, &context.cancellation());
  }
  if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return {};
  return {StatusCode::kUnavailable,
          fmt::format("no daemon runs, and '{} serve --background' failed: its message is above",
                      path)};
}

}  // namespace millrace
