#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>

#include "base/executor.h"
#include "base/mutex.h"

namespace millrace {

// Holds tasks until a test runs them, on the test's own thread, in an order drawn from a seed.
// Seed 0 means first in, first out. The same seed and the same tasks give the same order: a failing
// simulation is replayed by its seed.
//
// Tasks that nobody ran are destroyed with it, unrun. All methods are safe from any thread.
class ManualExecutor final : public Executor {
 public:
  explicit ManualExecutor(std::uint64_t seed = 0, std::size_t queued_tasks_max = SIZE_MAX);
  ~ManualExecutor() override;

  Status submit(Task task) override;
  void resume(Task task) override;
  std::string_view name() const override { return "manual"; }

  // Runs one task. Returns false when there is none.
  bool run_one();
  // Runs until no task is left, those queued meanwhile included. Returns how many ran.
  std::size_t run_all();
  std::size_t pending() const;

 private:
  struct QueuedTask {
    Task task;
    bool submitted;  // Counts against queued_tasks_max_.
  };

  const std::uint64_t seed_;
  const std::size_t queued_tasks_max_;

  mutable Mutex mutex_;
  std::mt19937_64 random_ MR_GUARDED_BY(mutex_);
  std::deque<QueuedTask> tasks_ MR_GUARDED_BY(mutex_);
  std::size_t submitted_queued_ MR_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
