#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"

namespace millrace {

// One thread around epoll: readiness of descriptors, timers, and tasks from other threads.
//
// Lifecycle: the constructor starts the thread, the destructor stops it after running the tasks
// that are queued; it must not run on the loop itself. watch/unwatch and timers are called on the
// loop's thread only (post a task to get there); resume() and submit() from anywhere.
class EventLoop final : public Executor {
 public:
  enum Interest : std::uint32_t { kRead = 1, kWrite = 2 };
  // `ready` is a set of Interest bits. Errors and hang-ups arrive as both, so that the next read or
  // write reports them. 0: something arrived during a pause, and no more will be told until the
  // next set_interest.
  using Ready = std::function<void(std::uint32_t ready)>;
  using TimerId = std::uint64_t;

  explicit EventLoop(std::string name, std::size_t queued_tasks_max = 65536);
  ~EventLoop() override;

  Status submit(Task task) override;
  void resume(Task task) override;
  std::string_view name() const override { return name_; }
  bool on_loop_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

  // Watches a descriptor. `ready` may watch, unwatch and set_interest, its own descriptor included.
  void watch(int fd, std::uint32_t interest, Ready ready);
  // Changes what a watched descriptor is watched for. Interest 0 is a pause and costs no system
  // call: the kernel is told only if an unwanted event arrives, which suits connections that rest
  // between two requests.
  void set_interest(int fd, std::uint32_t interest);
  bool watches(int fd) const { return watches_.contains(fd); }
  // Must come before the descriptor is closed.
  void unwatch(int fd);

  // Runs `task` on the loop at `when`, with a resolution of one millisecond, rounded up.
  TimerId run_at(TimePoint when, Task task);
  // Nothing happens if the timer has fired already.
  void cancel_timer(TimerId id);

 private:
  struct Watch {
    std::uint32_t interest = 0;         // What the owner wants.
    std::uint32_t kernel_interest = 0;  // What epoll was told, 0 when it does not know the fd.
    std::uint32_t generation = 0;  // Tells a stale event of a reused descriptor from a fresh one.
    std::shared_ptr<Ready> ready;  // Shared: it may remove itself while it runs.
  };

  void run();
  void run_posted();
  bool has_posted();
  void tell_kernel(int operation, int fd, Watch& watch, std::uint32_t interest);
  void dispatch(int fd, std::uint32_t generation, std::uint32_t events);
  void run_due_timers();
  int next_timeout_ms() const;
  void wake();

  // Constant after construction.
  const std::string name_;
  const std::size_t queued_tasks_max_;
  int epoll_fd_ = -1;
  int wake_fd_ = -1;
  std::thread thread_;

  // Touched by the loop's thread only.
  std::unordered_map<int, Watch> watches_;
  std::uint32_t next_generation_ = 1;
  std::multimap<TimePoint, std::pair<TimerId, Task>> timers_;
  std::unordered_map<TimerId, TimePoint> timer_times_;
  TimerId next_timer_id_ = 1;
  std::vector<Task> running_;  // Swapped with posted_, so that its memory is reused.

  Mutex mutex_;
  std::vector<Task> posted_ MR_GUARDED_BY(mutex_);
  bool stopping_ MR_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
