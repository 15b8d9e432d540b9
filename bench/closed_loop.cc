#include "bench/closed_loop.h"

#include <chrono>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "bench/bench_store.h"

namespace millrace::bench {
namespace {

class ClosedLoop {
 public:
  ClosedLoop(ObjectStore& store, const LoadPlan& plan)
      : store_(store), plan_(plan), context_(run_context()), start_(system_clock().now()) {}

  LoadResult run() {
    for (std::size_t i = 0; i < plan_.in_flight; ++i)
      send_next();
    MutexLock lock(mutex_);
    while (waiting_ > 0)
      idle_.wait(mutex_);
    require(failure_);
    return done_;
  }

 private:
  bool time_is_up() const {
    const std::chrono::duration<double> elapsed = system_clock().now() - start_;
    return elapsed.count() >= plan_.seconds_max;
  }

  std::optional<std::uint64_t> take_number() {
    MutexLock lock(mutex_);
    if (next_ == plan_.requests_max || !failure_.ok() || time_is_up()) return std::nullopt;
    ++waiting_;
    return next_++;
  }

  void send_next() {
    const std::optional<std::uint64_t> number = take_number();
    if (!number) return;
    store_.get_range(context_, plan_.request(*number),
                     Completion<GetResult>(inline_executor(),
                                           [this, number = *number](Result<GetResult> result) {
                                             take_answer(number, std::move(result));
                                           }));
  }

  void take_answer(std::uint64_t number, Result<GetResult> result) {
    Status status;
    std::uint64_t bytes = 0;
    if (result) {
      bytes = result->data.size();
      if (plan_.check) status = plan_.check(number, *result);
      result->data = {};  // Before the next request: it takes the same memory again.
    } else {
      status = std::move(result).error();
    }
    const bool good = status.ok();
    {
      MutexLock lock(mutex_);
      done_.requests += 1;
      done_.bytes += bytes;
      if (failure_.ok()) failure_ = std::move(status);
    }
    if (good) send_next();
    // The successor is counted by now, so zero means the end. Nothing of this object may be
    // touched after it: run() returns.
    MutexLock lock(mutex_);
    if (--waiting_ == 0) idle_.notify_all();
  }

  // Constant after construction.
  ObjectStore& store_;
  const LoadPlan& plan_;
  const RequestContext context_;
  const TimePoint start_;

  Mutex mutex_;
  CondVar idle_;
  std::uint64_t next_ MR_GUARDED_BY(mutex_) = 0;
  std::uint64_t waiting_ MR_GUARDED_BY(mutex_) = 0;
  LoadResult done_ MR_GUARDED_BY(mutex_);
  Status failure_ MR_GUARDED_BY(mutex_);
};

}  // namespace

LoadResult run_closed_loop(ObjectStore& store, const LoadPlan& plan) {
  return ClosedLoop(store, plan).run();
}

}  // namespace millrace::bench
