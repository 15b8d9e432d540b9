#include "objectstore/hedging_get.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "objectstore/paused_call.h"
#include "objectstore/retry_loop.h"

namespace millrace {

namespace {

// One read. It is in one of three states:
//  - waiting: no try is under way; a pause will launch the next one.
//  - trying: one try is under way, or two when it is hedged. A hedge is sent at most once per wait.
//  - finished: `done_` is answered. Answers that come later are dropped.
//
// Invariants:
//  1. Whoever sets finished_ takes done_ and answers it, outside the lock.
//  2. Nothing outside is called under the lock: not the inner store, no cancellation, no timer.
//  3. What is under way owns this object: the tries through their completions, the timers through
//     their tasks. The caller's cancellation refers to it weakly.
class HedgingGet : public std::enable_shared_from_this<HedgingGet> {
 public:
  HedgingGet(std::shared_ptr<ObjectStore> inner, std::shared_ptr<RetryControl> control,
             Executor& executor, const RequestContext& context, GetRequest request,
             Completion<GetResult> done)
      : inner_(std::move(inner)),
        control_(std::move(control)),
        executor_(executor),
        context_(context),
        request_(std::move(request)),
        loop_(*control_, context_),
        done_(std::move(done)) {}

  void start() {
    const Result<TimePoint> when = loop_at_start();
    if (!when) return finish(failure(when.error()));
    const auto id = context_.cancellation().subscribe([weak = weak_from_this()] {
      // Off the canceller's stack: the answer may run the caller's code.
      if (auto self = weak.lock()) self->executor_.resume([self] { self->on_cancelled(); });
    });
    bool cancelled = false;
    {
      MutexLock lock(mutex_);
      cancelled = finished_;
      if (!cancelled) subscription_ = id;
    }
    if (!cancelled) launch_at(*when);
  }

 private:
  struct Try {
    std::uint32_t number;
    bool hedge;
    TimePoint started;
    std::shared_ptr<Cancellation> cancellation;
  };

  Result<TimePoint> loop_at_start() {
    MutexLock lock(mutex_);
    return loop_.first_attempt_at();
  }

  void launch_at(TimePoint when) {
    if (when <= control_->clock().now()) return launch(false);
    pause_call(control_->clock(), executor_, context_, when,
               [self = shared_from_this()](Status status) {
                 if (!status.ok()) return self->finish(failure(std::move(status)));
                 self->launch(false);
               });
  }

  void launch(bool hedge) {
    auto cancellation = std::make_shared<Cancellation>();
    MutexLock lock(mutex_);
    if (finished_) return;
    const RequestContext context =
        (hedge ? loop_.hedge_context() : loop_.attempt_context()).with_cancellation(cancellation);
    const std::uint32_t number = context.attempt();
    tries_.push_back({number, hedge, control_->clock().now(), cancellation});
    lock.unlock();
    if (!hedge) arm_hedge(number);
    // Inline: an answer costs no hop through an executor of ours, only the caller's own.
    inner_->get_range(
        context, request_,
        Completion<GetResult>(inline_executor(), [self = shared_from_this(), number](auto result) {
          self->on_answer(number, std::move(result));
        }));
  }

  void arm_hedge(std::uint32_t number) {
    const std::optional<Duration> delay = control_->latency().hedge_delay(request_);
    if (!delay) return;
    const TimePoint when = control_->clock().now() + *delay;
    if (when >= context_.deadline()) return;
    auto timer = control_->clock().schedule(
        when, executor_, [self = shared_from_this(), number] { self->on_slow(number); });
    MutexLock lock(mutex_);
    hedge_timer_.swap(timer);  // The one before, of a try that has failed, goes outside the lock.
    lock.unlock();
  }

  // The try is slower than nearly all others. It may also be over by now.
  void on_slow(std::uint32_t number) {
    {
      MutexLock lock(mutex_);
      if (finished_ || tries_.size() != 1 || tries_.front().number != number) return;
    }
    if (control_->try_spend_on_hedge()) launch(true);
  }

  void on_answer(std::uint32_t number, Result<GetResult> result) {
    MutexLock lock(mutex_);
    if (finished_) return;
    const auto found = std::find_if(tries_.begin(), tries_.end(),
                                    [&](const Try& t) { return t.number == number; });
    Try answered = std::move(*found);
    tries_.erase(found);
    if (result) {
      record_latencies(answered);
      loop_.succeeded();
      if (answered.hedge) control_->on_hedge_won();
      lock.unlock();
      return finish(std::move(result));
    }
    if (!tries_.empty() && is_transient(result.error().code())) {
      // The other one may still succeed. Its answer decides.
      control_->on_failure(result.error());
      return;
    }
    Result<TimePoint> when = loop_.next_attempt_at(result.error());
    lock.unlock();
    if (!when) return finish(failure(std::move(when).error()));
    launch_at(*when);
  }

  // A loser has been slow for at least as long as it has been waited for: leaving it out would
  // teach the quantile that nothing is ever slow.
  void record_latencies(const Try& winner) MR_REQUIRES(mutex_) {
    const TimePoint now = control_->clock().now();
    control_->latency().record(request_, now - winner.started);
    for (const Try& loser : tries_)
      control_->latency().record(request_, now - loser.started);
  }

  void on_cancelled() {
    {
      MutexLock lock(mutex_);
      // The callback ran, so it is not there any more. Unsubscribing would wait for it, and with an
      // inline executor it is running below us.
      subscription_ = 0;
    }
    finish(failure(context_.check(control_->clock())));
  }

  // Answers, once, and calls off what is still under way.
  void finish(Result<GetResult> result) {
    MutexLock lock(mutex_);
    if (std::exchange(finished_, true)) return;
    Completion<GetResult> done = std::move(done_);
    std::unique_ptr<Clock::Timer> timer = std::move(hedge_timer_);
    const std::vector<Try> losers = std::move(tries_);
    const Cancellation::CallbackId subscription = subscription_;
    lock.unlock();
    timer.reset();
    if (subscription != 0) context_.cancellation().unsubscribe(subscription);
    for (const Try& loser : losers)
      loser.cancellation->request();
    done.complete(std::move(result));
  }

  const std::shared_ptr<ObjectStore> inner_;
  const std::shared_ptr<RetryControl> control_;
  Executor& executor_;
  const RequestContext context_;
  const GetRequest request_;

  Mutex mutex_;
  RetryLoop loop_ MR_GUARDED_BY(mutex_);
  Completion<GetResult> done_ MR_GUARDED_BY(mutex_);
  std::vector<Try> tries_ MR_GUARDED_BY(mutex_);
  std::unique_ptr<Clock::Timer> hedge_timer_ MR_GUARDED_BY(mutex_);
  Cancellation::CallbackId subscription_ MR_GUARDED_BY(mutex_) = 0;
  bool finished_ MR_GUARDED_BY(mutex_) = false;
};

}  // namespace

void start_hedging_get(std::shared_ptr<ObjectStore> inner, std::shared_ptr<RetryControl> control,
                       Executor& executor, const RequestContext& context, GetRequest request,
                       Completion<GetResult> done) {
  std::make_shared<HedgingGet>(std::move(inner), std::move(control), executor, context,
                               std::move(request), std::move(done))
      ->start();
}

}  // namespace millrace
