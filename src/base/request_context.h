#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/cancellation.h"
#include "base/clock.h"
#include "base/fetch_account.h"
#include "base/status.h"

namespace millrace {

// Who asks: kept by whoever answers many requests of one.
struct Caller {
  std::string principal;  // A user, a job, or "millrace" for the process itself. Never empty.
  std::string run;        // The run that it is part of (docs/cli.md), or empty.
};

// Until when, on whose behalf, and whether still. First parameter of every call that can wait.
// Cheap to copy; a copy shares the cancellation. Thread-compatible.
class RequestContext {
 public:
  // No deadline, nobody to cancel it, the process itself as principal: for start-up and tests.
  static RequestContext background();

  RequestContext(TimePoint deadline, std::string principal);
  RequestContext(TimePoint deadline, std::shared_ptr<const Caller> caller);

  TimePoint deadline() const { return deadline_; }
  bool has_deadline() const { return deadline_ != TimePoint::max(); }
  const std::string& principal() const { return caller_->principal; }
  const std::shared_ptr<const Caller>& caller() const { return caller_; }
  Cancellation& cancellation() const { return *cancellation_; }
  const std::shared_ptr<Cancellation>& shared_cancellation() const { return cancellation_; }
  // Which try of the same request this is, from 0. A store sends every later one on a connection of
  // its own: the old one may be what is slow or broken.
  std::uint32_t attempt() const { return attempt_; }

  // The same request with a deadline no later than `deadline`.
  RequestContext with_deadline(TimePoint deadline) const;
  // A part of the request that can be called off alone. Cancelling the parent does not reach it by
  // itself: whoever makes the child forwards the parent's cancellation.
  RequestContext with_cancellation(std::shared_ptr<Cancellation> cancellation) const;
  // What the request makes a cache fetch is charged to `account`: the first of many who want the
  // same bytes pays.
  RequestContext with_account(std::shared_ptr<FetchAccount> account) const;
  // Null when nobody counts.
  const std::shared_ptr<FetchAccount>& account() const { return account_; }
  // Whoever asks says by a plan what it will read: nothing is fetched beyond what it asks for.
  RequestContext with_plan() const {
    RequestContext context = *this;
    context.has_plan_ = true;
    return context;
  }
  bool has_plan() const { return has_plan_; }
  RequestContext with_attempt(std::uint32_t attempt) const {
    RequestContext context = *this;
    context.attempt_ = attempt;
    return context;
  }

  // kCancelled or kDeadlineExceeded when the request should stop, success otherwise.
  Status check(const Clock& clock) const;

 private:
  TimePoint deadline_;
  std::shared_ptr<const Caller> caller_;
  std::shared_ptr<Cancellation> cancellation_;
  std::shared_ptr<FetchAccount> account_;
  std::uint32_t attempt_ = 0;
  bool has_plan_ = false;
};

}  // namespace millrace
