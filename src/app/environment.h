#pragma once

#include <functional>
#include <optional>
#include <string>

namespace millrace {

// The value of an environment variable; nothing when it is unset or empty, which mean the same to
// us. A function, so that tests bring their own environment.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

// Reads the process's own environment.
EnvironmentLookup process_environment();

// Where the user's files belong, by the XDG base directory rules: $XDG_..._HOME where it is set and
// absolute, else below the home directory; below the temporary directory for a user without a home.
struct UserDirectories {
  std::string data;    // ~/.local/share/millrace
  std::string config;  // ~/.config/millrace
  // $XDG_RUNTIME_DIR/millrace, or the data directory where the session has none.
  std::string runtime;
};
UserDirectories user_directories(const EnvironmentLookup& environment);

}  // namespace millrace
