#include "objectstore/paused_call.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/mutex.h"

namespace millrace {

namespace {

// Invariants:
//  1. `then_` runs once: whoever sets finished_ owns it.
//  2. The armed timer's task owns this object, and this object owns the timer; finish() breaks the
//     circle. The cancellation holds only a weak reference, so a wait that is dropped with its
//     executor leaves nothing behind.
class PausedCall : public std::enable_shared_from_this<PausedCall> {
 public:
  PausedCall(Clock& clock, Executor& executor, const RequestContext& context,
             std::move_only_function<void(Status)> then)
      : clock_(clock), executor_(executor), context_(context), then_(std::move(then)) {}

  void start(TimePoint when) {
    auto timer = clock_.schedule(std::min(when, context_.deadline()), executor_,
                                 [self = shared_from_this(), when] { self->time_came(when); });
    {
      MutexLock lock(mutex_);
      // A timer that has fired already is destroyed on return, outside the lock.
      if (!finished_) timer_.swap(timer);
    }
    const auto id = context_.cancellation().subscribe([weak = weak_from_this()] {
      if (auto self = weak.lock()) {
        self->executor_.resume([self] { self->finish(self->context_.check(self->clock_), false); });
      }
    });
    MutexLock lock(mutex_);
    if (!finished_) {
      subscription_ = id;
      return;
    }
    lock.unlock();
    if (id != 0) context_.cancellation().unsubscribe(id);
  }

 private:
  void time_came(TimePoint when) {
    Status status = context_.check(clock_);
    if (status.ok() && clock_.now() < when) {
      status = {StatusCode::kDeadlineExceeded, "the deadline passed during a pause"};
    }
    finish(std::move(status), true);
  }

  // A cancellation drops its callbacks once it ran them, and unsubscribing from inside one would
  // wait for itself: that path passes `unsubscribe` as false.
  void finish(Status status, bool unsubscribe) {
    MutexLock lock(mutex_);
    if (std::exchange(finished_, true)) return;
    auto then = std::move(then_);
    auto timer = std::move(timer_);
    const auto id = subscription_;
    lock.unlock();
    timer.reset();
    if (unsubscribe && id != 0) context_.cancellation().unsubscribe(id);
    then(std::move(status));
  }

  Clock& clock_;
  Executor& executor_;
  const RequestContext context_;

  Mutex mutex_;
  std::move_only_function<void(Status)> then_ MR_GUARDED_BY(mutex_);
  std::unique_ptr<Clock::Timer> timer_ MR_GUARDED_BY(mutex_);
  Cancellation::CallbackId subscription_ MR_GUARDED_BY(mutex_) = 0;
  bool finished_ MR_GUARDED_BY(mutex_) = false;
};

}  // namespace

void pause_call(Clock& clock, Executor& executor, const RequestContext& context, TimePoint when,
                std::move_only_function<void(Status)> then) {
  std::make_shared<PausedCall>(clock, executor, context, std::move(then))->start(when);
}

Status pause_thread(Clock& clock, const RequestContext& context, TimePoint when) {
  const TimePoint until = std::min(when, context.deadline());
  if (clock.now() < until) clock.sleep_until(until, &context.cancellation());
  MR_RETURN_IF_ERROR(context.check(clock));
  if (clock.now() < when) {
    return {StatusCode::kDeadlineExceeded, "the deadline passed during a pause"};
  }
  return {};
}

}  // namespace millrace
