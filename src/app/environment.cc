#include "app/environment.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

namespace millrace {
namespace {

// Of this user, from the system's list; empty where there is none that can be used.
std::string listed_home() {
  std::array<char, 16384> memory{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, memory.data(), memory.size(), &found) != 0 ||
      found == nullptr || found->pw_dir == nullptr) {
    return "";
  }
  const std::string home = found->pw_dir;
  struct stat facts{};
  // Users without a home have "/" or "/nonexistent".
  const bool is_home = home.starts_with('/') && home != "/" && ::stat(home.c_str(), &facts) == 0 &&
                       S_ISDIR(facts.st_mode);
  return is_home ? home : "";
}

}  // namespace

EnvironmentLookup process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    // Nothing in Millrace writes to the environment, so reading it from any thread is safe.
    const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
    if (value == nullptr || *value == '\0') return std::nullopt;
    return std::string(value);
  };
}

UserDirectories user_directories(const EnvironmentLookup& environment) {
  return user_directories(environment, listed_home());
}

UserDirectories user_directories(const EnvironmentLookup& environment, const std::string& home) {
  const auto absolute = [&](const char* name) -> std::optional<std::string> {
    auto value = environment(name);
    if (value && value->starts_with('/')) return value;
    return std::nullopt;
  };
  UserDirectories directories;
  std::string base = absolute("HOME").value_or(home);
  if (base.empty()) {
    directories.substitute = fmt::format("/tmp/millrace-{}", ::geteuid());
    base = directories.substitute;
  }
  directories.data = absolute("XDG_DATA_HOME").value_or(base + "/.local/share") + "/millrace";
  directories.config = absolute("XDG_CONFIG_HOME").value_or(base + "/.config") + "/millrace";
  return directories;
}

Status claim_directory(const std::string& path) {
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return {StatusCode::kIoError,
            fmt::format("cannot make '{}': {}; set HOME to a directory of this user's own", path,
                        std::system_category().message(errno))};
  }
  struct stat facts{};
  // Not stat(): a symlink is another's way to choose the place.
  const bool is_own = ::lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) &&
                      facts.st_uid == ::geteuid() && (facts.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  if (is_own) return {};
  return {StatusCode::kPermissionDenied,
          fmt::format("'{}' stands for the home that this user does not have, and others own it or "
                      "may look into it: set HOME to a directory of this user's own",
                      path)};
}

}  // namespace millrace
