#include "app/machine_diagnosis.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "base/units.h"
#include "frontends/fuse/fuse_passthrough.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Level = Diagnosis::Level;

Diagnosis kernel_finding() {
  utsname system{};
  ::uname(&system);
  int major = 0;
  int minor = 0;
  std::sscanf(system.release, "%d.%d", &major, &minor);  // NOLINT(cert-err34-c): 0.0 is "old".
  const std::string sentence = fmt::format("Linux {} on {}", system.release, system.machine);
  if (major > 5 || (major == 5 && minor >= 10)) return {Level::kOk, "kernel", sentence, ""};
  return {Level::kWarn, "kernel", sentence + " is older than what we test",
          "use Linux 5.10 or later; 6.9 for the fastest mounts"};
}

Diagnosis fuse_finding() {
  if (::access("/dev/fuse", R_OK | W_OK) == 0) {
    const Status passthrough = passthrough_support();
    return {Level::kOk, "fuse",
            passthrough.ok()
                ? "mounts work, and the kernel reads files that are cached whole by itself"
                : fmt::format("mounts work, with all reads through the daemon: {}",
                              passthrough.message()),
            ""};
  }
  const bool absent = errno == ENOENT;
  return {Level::kWarn, "fuse",
          absent ? "/dev/fuse is not there, so nothing can be mounted"
                 : "/dev/fuse may not be opened by this user",
          absent ? "run 'modprobe fuse'; in a container add --device /dev/fuse --cap-add SYS_ADMIN"
                 : "add the user to the group of /dev/fuse, or give others access to it"};
}

Diagnosis open_files_finding(const Settings& settings) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  // Connections, cache files and some for everything else.
  const std::uint64_t wanted = std::max<std::uint64_t>(4096, settings.connections_max * 2UL);
  const std::string sentence =
      fmt::format("{} open files are allowed, {} at most", limit.rlim_cur, limit.rlim_max);
  // The daemon takes as many as it may.
  if (limit.rlim_max >= wanted) return {Level::kOk, "open_files", sentence, ""};
  return {Level::kWarn, "open_files", sentence,
          fmt::format("allow {} by LimitNOFILE= in the service file, or in limits.conf", wanted)};
}

std::optional<std::uint64_t> first_number(const std::string& path) {
  std::ifstream stream(path);
  std::uint64_t number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

// What this process may use: the smallest limit among its cgroup and those above it, else the RAM.
std::uint64_t memory_limit() {
  std::uint64_t limit = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "0::/path" is version 2; "9:memory:/path" is version 1, still found in older containers.
    const bool unified = line.starts_with("0::");
    const auto memory = line.find(":memory:");
    if (!unified && memory == std::string::npos) continue;
    const std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const std::string file = unified ? "/memory.max" : "/memory.limit_in_bytes";
    for (fs::path group = unified ? line.substr(3) : line.substr(memory + 8);;
         group = group.parent_path()) {
      const auto max = first_number(root + group.string() + file);
      if (max) limit = std::min(limit, *max);
      if (group == group.parent_path()) break;
    }
  }
  return limit;
}

Diagnosis memory_finding(const Settings& settings) {
  const std::uint64_t limit = memory_limit();
  const std::string sentence =
      fmt::format("{} of memory may be used, {} of it for data", format_size(limit),
                  format_size(settings.memory_max_bytes));
  // The rest of the process, manifests and page cache need room beside the data.
  if (settings.memory_max_bytes <= limit / 3 * 2) return {Level::kOk, "memory", sentence, ""};
  return {Level::kWarn, "memory", sentence,
          fmt::format("set memory_max to {} or less, or raise the memory limit",
                      format_size(limit / 2 / kMiB * kMiB))};
}

fs::path nearest_existing(fs::path path) {
  std::error_code error;
  while (!fs::exists(path, error) && path.has_parent_path() && path != path.parent_path()) {
    path = path.parent_path();
  }
  return path;
}

Diagnosis directory_finding(const std::string& check, const std::string& path,
                            std::string_view advice) {
  const fs::path existing = nearest_existing(fs::absolute(path));
  std::error_code error;
  if (!fs::is_directory(existing, error)) {
    return {Level::kFail, check, fmt::format("'{}' is not a directory", existing.string()),
            std::string(advice)};
  }
  if (::access(existing.c_str(), W_OK | X_OK) != 0) {
    return {Level::kFail, check,
            fmt::format("'{}' cannot be written: {}", existing.string(),
                        std::generic_category().message(errno)),
            std::string(advice)};
  }
  struct statvfs space{};
  if (::statvfs(existing.c_str(), &space) != 0) {
    return {Level::kFail, check,
            fmt::format("'{}' cannot be examined: {}", existing.string(),
                        std::generic_category().message(errno)),
            std::string(advice)};
  }
  const std::uint64_t free = space.f_bavail * space.f_frsize;
  const std::uint64_t total = space.f_blocks * space.f_frsize;
  const std::string made = existing == fs::absolute(path) ? "" : " (will be made)";
  const std::string sentence = fmt::format("'{}' can be written{}, {} of {} free", path, made,
                                           format_size(free), format_size(total));
  if (free < 5 * kGiB) {
    return {Level::kWarn, check, sentence, "free some space, or " + std::string(advice)};
  }
  return {Level::kOk, check, sentence, ""};
}

}  // namespace

std::vector<Diagnosis> machine_diagnosis(const Settings& settings) {
  std::vector<Diagnosis> findings = {
      kernel_finding(),
      fuse_finding(),
      open_files_finding(settings),
      memory_finding(settings),
      directory_finding("cache_directory", settings.cache,
                        "name another directory with --cache DIR or MILLRACE_CACHE"),
      directory_finding("socket_directory",
                        fs::path(fs::absolute(settings.socket)).parent_path().string(),
                        "name another path with --socket PATH or MILLRACE_SOCKET"),
  };
  if (settings.store.scheme == StoreUrl::Scheme::kFile) {
    findings.push_back(
        directory_finding("store_directory", settings.store.root,
                          "name another directory with --store DIR or MILLRACE_STORE"));
  }
  return findings;
}

}  // namespace millrace
