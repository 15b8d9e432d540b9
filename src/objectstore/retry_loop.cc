#include "objectstore/retry_loop.h"

#include <fmt/format.h>

#include "base/units.h"
#include "objectstore/paused_call.h"

namespace millrace {

RetryLoop::RetryLoop(RetryControl& control, const RequestContext& context)
    : control_(control), context_(context), started_(control.clock().now()) {}

Result<TimePoint> RetryLoop::first_attempt_at() {
  MR_RETURN_IF_ERROR(context_.check(control_.clock()));
  const TimePoint when = control_.after_pause(started_);
  if (when >= context_.deadline()) {
    return failure(StatusCode::kThrottled,
                   fmt::format("the store asked for a pause of {} more, which passes the deadline",
                               format_duration(when - started_)));
  }
  ++attempts_;
  return when;
}

Result<TimePoint> RetryLoop::next_attempt_at(const Status& error) {
  control_.on_failure(error);
  if (!is_transient(error.code())) {
    return failure(attempts_ > 1 ? given_up(error, "this failure is final") : error);
  }
  // A cancelled request must not be reported as an unreachable store.
  MR_RETURN_IF_ERROR(context_.check(control_.clock()));
  if (attempts_ >= control_.policy().attempts_max) {
    return failure(given_up(error, "that is the limit"));
  }
  const TimePoint now = control_.clock().now();
  const TimePoint when = control_.after_pause(now + control_.backoff(attempts_, error));
  if (when >= context_.deadline()) {
    return failure(given_up(error, "the next would start after the deadline"));
  }
  if (!control_.try_spend_on_retry()) {
    return failure(given_up(error, "the store's retry budget is spent"));
  }
  ++attempts_;
  return when;
}

void RetryLoop::succeeded() { control_.on_success(attempts_ - hedges_ > 1); }

Status RetryLoop::wait_until(TimePoint when) const {
  return pause_thread(control_.clock(), context_, when);
}

Status RetryLoop::given_up(const Status& error, std::string_view why) const {
  return error.with_context(fmt::format("gave up after {} attempt{} in {} ({})", attempts_,
                                        attempts_ == 1 ? "" : "s",
                                        format_duration(control_.clock().now() - started_), why));
}

}  // namespace millrace
