#include "frontends/fuse/fuse_callers.h"

#include <string_view>

#include <fmt/format.h>

#include "platform/file.h"

namespace millrace {
namespace {

constexpr std::string_view kRunVariable = "MILLRACE_RUN=";
// Where logins, services and the system itself live: no jobs.
constexpr std::string_view kOrdinaryGroups[] = {"/user.slice", "/system.slice", "/init.scope"};

// The group of the one hierarchy that counts, after "0::".
std::string_view unified_group(std::string_view groups) {
  constexpr std::string_view kUnified = "0::";
  while (!groups.empty()) {
    const std::size_t end = std::min(groups.find('\n'), groups.size());
    const std::string_view line = groups.substr(0, end);
    if (line.starts_with(kUnified)) return line.substr(kUnified.size());
    groups.remove_prefix(std::min(end + 1, groups.size()));
  }
  return {};
}

}  // namespace

std::string run_of_process(const std::string& environment, const std::string& control_groups) {
  for (std::string_view rest = environment; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    const std::string_view variable = rest.substr(0, end);
    if (variable.starts_with(kRunVariable)) {
      return std::string(variable.substr(kRunVariable.size()));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const std::string_view group = unified_group(control_groups);
  if (group.size() <= 1) return "";
  for (const std::string_view ordinary : kOrdinaryGroups) {
    if (group.starts_with(ordinary)) return "";
  }
  return fmt::format("cgroup:{}", group);
}

std::shared_ptr<const Caller> FuseCallers::caller(std::uint32_t uid, std::uint32_t pid,
                                                  TimePoint now) {
  std::shared_ptr<const Caller> caller;
  {
    MutexLock lock(mutex_);
    const auto found = known_.find(pid);
    if (found != known_.end() && found->second.uid == uid) {
      if (now < found->second.until) return found->second.caller;
      caller = found->second.caller;
    } else {
      caller = std::make_shared<const Caller>(Caller{fmt::format("uid:{}", uid), ""});
    }
    if (known_.size() >= kCallersMax) known_.clear();
    known_.insert_or_assign(pid, Known{caller, uid, now + kLifetime});
  }
  // The kernel itself, reading ahead, is process 0. When too many wait, this one goes without.
  if (pid != 0) static_cast<void>(looking_.submit([this, uid, pid] { look_at(uid, pid); }));
  return caller;
}

void FuseCallers::look_at(std::uint32_t uid, std::uint32_t pid) {
  const Result<std::string> environment = read_file(fmt::format("/proc/{}/environ", pid));
  const Result<std::string> groups = read_file(fmt::format("/proc/{}/cgroup", pid));
  std::string run = run_of_process(environment.value_or(""), groups.value_or(""));
  MutexLock lock(mutex_);
  const auto found = known_.find(pid);
  if (found == known_.end() || found->second.uid != uid) return;
  if (found->second.caller->run == run) return;
  found->second.caller =
      std::make_shared<const Caller>(Caller{found->second.caller->principal, std::move(run)});
}

}  // namespace millrace
