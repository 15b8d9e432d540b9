#include "platform/spawn.h"

#include <signal.h>
#include <unistd.h>

#include <string_view>

namespace millrace {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts)
    result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!variables.contains(std::string(text.substr(0, text.find('='))))) all.emplace_back(text);
  }
  for (const auto& [name, value] : variables)
    all.push_back(name + "=" + value);
  return all;
}

}  // namespace

int spawn(std::vector<std::string> command, const SpawnOptions& options, pid_t& pid) {
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  sigset_t restored;
  sigemptyset(&restored);
  sigaddset(&restored, SIGPIPE);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &restored);
  const int session = options.new_session ? POSIX_SPAWN_SETSID : 0;
  ::posix_spawnattr_setflags(
      &attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | session));
  std::vector<std::string> environment = environment_with(options.variables);
  const int error = ::posix_spawnp(&pid, command.front().c_str(), options.actions, &attributes,
                                   pointers(command).data(), pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace millrace
