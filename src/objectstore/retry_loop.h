#pragma once

#include <cstdint>
#include <string_view>

#include "base/request_context.h"
#include "base/status.h"
#include "objectstore/retry_control.h"

namespace millrace {

// The decisions of one operation's attempts: whether and when to make the next one, and what to say
// in the end. Makes no request and waits for nothing itself, so that blocking and asynchronous
// callers share it. Thread-compatible; the control must outlive it.
class RetryLoop {
 public:
  RetryLoop(RetryControl& control, const RequestContext& context);

  // When the first attempt may start. kThrottled when the store is paused beyond the deadline.
  Result<TimePoint> first_attempt_at();
  // After a failed attempt: when the next may start, or the failure to return. That keeps the last
  // error's code and says how many attempts were made, for how long, and why there is no other.
  Result<TimePoint> next_attempt_at(const Status& error);
  // The operation is done.
  void succeeded();

  // Attempts that next_attempt_at() or first_attempt_at() allowed so far.
  std::uint32_t attempts() const { return attempts_; }
  // The context for the attempt that was allowed last.
  RequestContext attempt_context() const { return context_.with_attempt(attempts_ - 1); }
  // A hedge counts as an attempt, so that messages and attempt numbers stay true; but its tokens do
  // not come back with success, or a slow store would be sent twice the requests for ever.
  RequestContext hedge_context() {
    ++hedges_;
    return context_.with_attempt(attempts_++);
  }

  // Blocks until then; kCancelled or kDeadlineExceeded when the context ends first.
  Status wait_until(TimePoint when) const;

 private:
  Status given_up(const Status& error, std::string_view why) const;

  RetryControl& control_;
  const RequestContext context_;
  const TimePoint started_;
  std::uint32_t attempts_ = 0;
  std::uint32_t hedges_ = 0;
};

// Calls `attempt(context)`, which returns a Result, until it succeeds, fails for good, or the
// policy, the budget or the deadline ends it. Blocks. `attempt` must be safe to repeat.
template <class Attempt>
auto retry_call(RetryControl& control, const RequestContext& context, Attempt&& attempt)
    -> decltype(attempt(context)) {
  RetryLoop loop(control, context);
  Result<TimePoint> when = loop.first_attempt_at();
  while (true) {
    if (!when) return failure(std::move(when).error());
    MR_RETURN_IF_ERROR(loop.wait_until(*when));
    auto result = attempt(loop.attempt_context());
    if (result) {
      loop.succeeded();
      return result;
    }
    when = loop.next_attempt_at(result.error());
  }
}

}  // namespace millrace
