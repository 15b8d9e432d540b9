#include "app/environment.h"

#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

namespace millrace {

EnvironmentLookup process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    // Nothing in Millrace writes to the environment, so reading it from any thread is safe.
    const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
    if (value == nullptr || *value == '\0') return std::nullopt;
    return std::string(value);
  };
}

UserDirectories user_directories(const EnvironmentLookup& environment) {
  const auto absolute = [&](const char* name) -> std::optional<std::string> {
    auto value = environment(name);
    if (value && value->starts_with('/')) return value;
    return std::nullopt;
  };
  const std::string home = absolute("HOME").value_or(fmt::format("/tmp/millrace-{}", ::getuid()));
  UserDirectories directories;
  directories.data = absolute("XDG_DATA_HOME").value_or(home + "/.local/share") + "/millrace";
  directories.config = absolute("XDG_CONFIG_HOME").value_or(home + "/.config") + "/millrace";
  const auto runtime = absolute("XDG_RUNTIME_DIR");
  directories.runtime = runtime ? *runtime + "/millrace" : directories.data;
  return directories;
}

}  // namespace millrace
