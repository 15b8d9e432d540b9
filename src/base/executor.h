#pragma once

#include <string_view>

#include "base/status.h"
#include "base/task.h"

namespace millrace {

// Runs tasks. The seam through which all concurrency passes: real pools in the daemon, a seeded
// single-threaded executor in simulation.
//
// All methods are safe from any thread.
class Executor {
 public:
  virtual ~Executor() = default;

  // Admits new work. Fails with kResourceExhausted, without running the task, when the executor's
  // queue is full or it is shutting down: load is refused, never queued without bound.
  virtual Status submit(Task task) = 0;

  // Continues work that was admitted elsewhere: the callback of a completion, a timer. Always
  // accepted, because refusing it would lose an answer somebody waits for; it stays bounded since
  // each continuation belongs to a request that passed an admission limit. After shutdown the
  // task runs on the calling thread.
  virtual void resume(Task task) = 0;

  // For logs and thread names.
  virtual std::string_view name() const = 0;
};

// Runs every task at once on the calling thread. For callbacks that are short and take no lock that
// the caller may hold.
Executor& inline_executor();

}  // namespace millrace
