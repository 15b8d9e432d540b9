#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/request_context.h"
#include "base/thread_pool.h"

namespace millrace {

// Who stands behind the process ids that the kernel names. The principal is the user; the run is
// what the process has in MILLRACE_RUN, else the control group that a scheduler put it in.
//
// A process is looked at on a thread of its own, and its first requests are answered without a run:
// its environment can be read only while no other thread of it waits for us in a page fault.
//
// Safe from any thread.
class FuseCallers {
 public:
  // Never waits.
  std::shared_ptr<const Caller> caller(std::uint32_t uid, std::uint32_t pid, TimePoint now)
      MR_EXCLUDES(mutex_);

 private:
  // A number may name another process by then.
  static constexpr Duration kLifetime = std::chrono::seconds(10);
  static constexpr std::size_t kCallersMax = 4096;

  struct Known {
    std::shared_ptr<const Caller> caller;
    std::uint32_t uid = 0;
    TimePoint until;
  };

  void look_at(std::uint32_t uid, std::uint32_t pid) MR_EXCLUDES(mutex_);

  Mutex mutex_;
  std::unordered_map<std::uint32_t, Known> known_ MR_GUARDED_BY(mutex_);
  // Last: its tasks use the others until it is gone.
  ThreadPool looking_{{.name = "callers", .threads = 1, .queued_tasks_max = 256}};
};

// The run of a process, by its environment and its control group as /proc has them; empty when it
// is part of none.
std::string run_of_process(const std::string& environment, const std::string& control_groups);

}  // namespace millrace
