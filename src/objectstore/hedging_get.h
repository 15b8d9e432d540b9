#pragma once

#include <memory>

#include "objectstore/object_store.h"
#include "objectstore/retry_control.h"

namespace millrace {

// Answers one get_range with as many attempts as it takes: retries after failures, and a second GET
// beside a first one that is slow. First success wins and the loser is cancelled.
//
// Returns at once; `done` is answered exactly once, by the context's deadline as far as `inner`
// keeps its own. The operation owns what it needs, so that the calling store may go before the
// answer. `executor` runs timers and must outlive the operation.
void start_hedging_get(std::shared_ptr<ObjectStore> inner, std::shared_ptr<RetryControl> control,
                       Executor& executor, const RequestContext& context, GetRequest request,
                       Completion<GetResult> done);

}  // namespace millrace
