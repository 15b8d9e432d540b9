#include "frontends/fuse/fuse_callers.h"

#include <string_view>

#include <fmt/format.h>

#include "platform/file.h"

namespace millrace {
namespace {

constexpr std::string_view kRunVariable = "MILLRACE_RUN=";
// Where logins, services and the system itself live: no jobs by themselves.
constexpr std::string_view kOrdinaryGroups[] = {"/user.slice", "/system.slice", "/init.scope"};

// Whether a component of a group's path is a job of Slurm ("job_7"), a pod of Kubernetes
// ("kubepods-burstable-pod<uid>.slice", "pod<uid>") or a container of Docker or Podman
// ("docker-<id>.scope"). What is below it, steps and tasks, belongs to the same job.
bool is_job(std::string_view component) {
  const auto rest_of = [&](std::string_view prefix) {
    return component.starts_with(prefix) ? component.substr(prefix.size()) : std::string_view();
  };
  const std::string_view job = rest_of("job_");
  if (!job.empty() && job.find_first_not_of("0123456789") == std::string_view::npos) return true;
  if (component.starts_with("kubepods-") && component.find("-pod") != std::string_view::npos) {
    return true;
  }
  // A pod's id has 36 characters, with or without its hyphens 32.
  if (rest_of("pod").size() >= 32) return true;
  return component.ends_with(".scope") &&
         (component.starts_with("docker-") || component.starts_with("libpod-"));
}

// The part of a group's path that names a job; empty where the process belongs to none. What is not
// known is a job by itself, unless it is where logins and services live.
std::string_view job_group(std::string_view group) {
  for (std::size_t begin = 1; begin < group.size();) {
    const std::size_t end = std::min(group.find('/', begin), group.size());
    if (is_job(group.substr(begin, end - begin))) return group.substr(0, end);
    begin = end + 1;
  }
  for (const std::string_view ordinary : kOrdinaryGroups) {
    if (group.starts_with(ordinary)) return {};
  }
  return group.size() > 1 ? group : std::string_view();
}

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
  const std::string_view group = job_group(unified_group(control_groups));
  return group.empty() ? "" : fmt::format("cgroup:{}", group);
}

std::shared_ptr<const Caller> FuseCallers::caller(std::uint32_t uid, std::uint32_t pid,
                                                  TimePoint now) {
  std::shared_ptr<Process> process;
  bool is_new = false;
  {
    MutexLock lock(mutex_);
    std::shared_ptr<Process>& known = known_[pid];
    is_new = known == nullptr || known->uid != uid || now >= known->until;
    if (is_new) {
      // The kernel itself, reading ahead, is process 0.
      known = std::make_shared<Process>(
          Process{.uid = uid,
                  .until = now + kLifetime,
                  .caller = std::make_shared<const Caller>(Caller{fmt::format("uid:{}", uid), ""}),
                  .was_looked_at = pid == 0});
    }
    process = known;
    if (known_.size() > kCallersMax) known_.clear();
    if (process->was_looked_at) return process->caller;
  }
  // When too many wait, this one goes without.
  if (is_new && !looking_.submit([this, process, pid] { look_at(*process, pid); }).ok()) {
    return process->caller;
  }
  const auto until = std::chrono::steady_clock::now() + kLookMax;
  MutexLock lock(mutex_);
  while (!process->was_looked_at && looked_.wait_until(mutex_, until)) {
  }
  // Nobody else waits for one that is stuck.
  process->was_looked_at = true;
  return process->caller;
}

void FuseCallers::look_at(Process& process, std::uint32_t pid) {
  const Result<std::string> environment = read_file(fmt::format("/proc/{}/environ", pid));
  const Result<std::string> groups = read_file(fmt::format("/proc/{}/cgroup", pid));
  std::string run = run_of_process(environment.value_or(""), groups.value_or(""));
  MutexLock lock(mutex_);
  process.caller =
      std::make_shared<const Caller>(Caller{process.caller->principal, std::move(run)});
  process.was_looked_at = true;
  looked_.notify_all();
}

}  // namespace millrace
