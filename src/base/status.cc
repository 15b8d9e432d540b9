#include "base/status.h"

#include <cassert>

namespace millrace {

std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kUnavailable:
      return "unavailable";
    case StatusCode::kThrottled:
      return "throttled";
    case StatusCode::kConflict:
      return "conflict";
    case StatusCode::kPreconditionFailed:
      return "precondition_failed";
    case StatusCode::kNotFound:
      return "not_found";
    case StatusCode::kInvalidArgument:
      return "invalid_argument";
    case StatusCode::kPermissionDenied:
      return "permission_denied";
    case StatusCode::kUnauthenticated:
      return "unauthenticated";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kResourceExhausted:
      return "resource_exhausted";
    case StatusCode::kDeadlineExceeded:
      return "deadline_exceeded";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kCorruption:
      return "corruption";
    case StatusCode::kIoError:
      return "io_error";
    case StatusCode::kInternal:
      return "internal";
  }
  return "unknown";
}

Status::Status(StatusCode code, std::string message)
    : failure_(std::make_unique<Failure>(code, std::move(message))) {
  assert(code != StatusCode::kOk && "success is Status()");
}

Status::Status(const Status& other)
    : failure_(other.failure_ ? std::make_unique<Failure>(*other.failure_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) *this = Status(other);
  return *this;
}

const std::string& Status::message() const {
  static const std::string empty;
  return failure_ ? failure_->message : empty;
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  return std::string(status_code_name(code())) + ": " + failure_->message;
}

Status Status::with_context(std::string_view context) const {
  if (ok()) return {};
  Status result(failure_->code, std::string(context) + ": " + failure_->message);
  result.failure_->retry_after = failure_->retry_after;
  return result;
}

Status Status::with_retry_after(std::chrono::nanoseconds pause) const {
  Status result(*this);
  if (!result.ok()) result.failure_->retry_after = pause;
  return result;
}

bool is_transient(StatusCode code) {
  return code == StatusCode::kUnavailable || code == StatusCode::kThrottled ||
         code == StatusCode::kCorruption;
}

}  // namespace millrace
