#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/status.h"

namespace millrace {

// The value of an environment variable; nothing when it is unset or empty, which mean the same to
// us. A function, so that tests bring their own environment.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

// Reads the process's own environment.
EnvironmentLookup process_environment();

// Where the user's files belong, by the XDG base directory rules: $XDG_..._HOME where it is set and
// absolute, else below the home directory: $HOME, or what the system's list of users says, as for
// programs that systemd or mount(8) start.
struct UserDirectories {
  std::string data;    // ~/.local/share/millrace
  std::string config;  // ~/.config/millrace
  // The directory in the temporary one that stands for a home which the user does not have. Empty
  // for all others.
  std::string substitute;
};
UserDirectories user_directories(const EnvironmentLookup& environment);
// The same where `home` is what the list of users says; empty where that is no directory.
UserDirectories user_directories(const EnvironmentLookup& environment, const std::string& home);

// Makes a directory that only this user can look into, or sees to it that it is one: anybody can
// make one of its name in the temporary directory first, and would have the user's files.
// kPermissionDenied when it is another's or others have a right to it.
Status claim_directory(const std::string& path);

}  // namespace millrace
