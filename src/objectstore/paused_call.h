#pragma once

#include <functional>

#include "base/clock.h"
#include "base/executor.h"
#include "base/request_context.h"
#include "base/status.h"

namespace millrace {

// Holds a call back until `when`, its context's deadline or its cancellation, whichever comes
// first, without holding a thread. Then hands `then` to `executor`, exactly once, with success,
// with kDeadlineExceeded or with kCancelled. Safe from any thread; the clock and the executor must
// outlive the wait.
void pause_call(Clock& clock, Executor& executor, const RequestContext& context, TimePoint when,
                std::move_only_function<void(Status)> then);

// The blocking form. Returns once `when` has come, else kDeadlineExceeded or kCancelled.
Status pause_thread(Clock& clock, const RequestContext& context, TimePoint when);

}  // namespace millrace
