#include "base/request_context.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace millrace {

RequestContext RequestContext::background() { return {TimePoint::max(), "millrace"}; }

RequestContext::RequestContext(TimePoint deadline, std::string principal)
    : RequestContext(deadline, std::make_shared<const Caller>(Caller{std::move(principal), {}})) {}

RequestContext::RequestContext(TimePoint deadline, std::shared_ptr<const Caller> caller)
    : deadline_(deadline),
      caller_(std::move(caller)),
      cancellation_(std::make_shared<Cancellation>()) {
  assert(!caller_->principal.empty());
}

RequestContext RequestContext::with_deadline(TimePoint deadline) const {
  RequestContext context = *this;
  context.deadline_ = std::min(deadline_, deadline);
  return context;
}

RequestContext RequestContext::with_cancellation(std::shared_ptr<Cancellation> cancellation) const {
  assert(cancellation != nullptr);
  RequestContext context = *this;
  context.cancellation_ = std::move(cancellation);
  return context;
}

RequestContext RequestContext::with_account(std::shared_ptr<FetchAccount> account) const {
  RequestContext context = *this;
  context.account_ = std::move(account);
  return context;
}

Status RequestContext::check(const Clock& clock) const {
  if (cancellation_->requested()) return {StatusCode::kCancelled, "the request was cancelled"};
  if (has_deadline() && clock.now() >= deadline_) {
    return {StatusCode::kDeadlineExceeded, "the request's deadline has passed"};
  }
  return {};
}

}  // namespace millrace
