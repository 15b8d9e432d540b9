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
// A process is looked at before its first request is answered, so that nothing it reads is booked
// under no run. That happens on a thread of its own, and is not waited for without end: the
// environment of a process can be read only while none of its threads waits for us with its memory
// map locked.
//
// Safe from any thread.
class FuseCallers {
 public:
  // Waits for up to kLookMax when the process is not known, or was not looked at for a while.
  std::shared_ptr<const Caller> caller(std::uint32_t uid, std::uint32_t pid, TimePoint now)
      MR_EXCLUDES(mutex_);

 private:
  // A number may name another process by then.
  static constexpr Duration kLifetime = std::chrono::seconds(10);
  // It takes less than a tenth of a millisecond, unless the process is stuck or the machine busy.
  static constexpr Duration kLookMax = std::chrono::milliseconds(250);
  static constexpr std::size_t kCallersMax = 4096;

  // What is known of a process; guarded by mutex_, but for what is constant.
  struct Process {
    const std::uint32_t uid = 0;
    const TimePoint until;
    std::shared_ptr<const Caller> caller;
    bool was_looked_at = false;
  };

  void look_at(Process& process, std::uint32_t pid) MR_EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar looked_;
  std::unordered_map<std::uint32_t, std::shared_ptr<Process>> known_ MR_GUARDED_BY(mutex_);
  // Last: its tasks use the others until it is gone. Several, since one may be stuck.
  ThreadPool looking_{{.name = "callers", .threads = 4, .queued_tasks_max = 256}};
};

// The run of a process, by its environment and its control group as /proc has them; empty when it
// is part of none.
std::string run_of_process(const std::string& environment, const std::string& control_groups);

}  // namespace millrace
