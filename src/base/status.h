#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace millrace {

// What the caller can do about a failure. Front ends map codes to their own numbers in one file
// each, so a code is added only when callers would act differently on it.
enum class StatusCode : std::uint8_t {
  kOk,
  // Retry here: nothing is known to be wrong but this attempt (reset, time-out of one try, 5xx).
  kUnavailable,
  // Retry here, but slower: the other side asked for less.
  kThrottled,
  // Retry higher up: the state read before is no longer true, or a concurrent writer won.
  kConflict,
  // Wrong version: a condition on the object's identity did not hold.
  kPreconditionFailed,
  kNotFound,
  // Give up: the same request will fail again until something outside changes.
  kInvalidArgument,
  kPermissionDenied,
  kUnauthenticated,
  kUnsupported,
  // A limit of ours is reached (queue, pool, memory, disk). Shed load or wait; nothing is broken.
  kResourceExhausted,
  kDeadlineExceeded,
  kCancelled,
  // Bytes failed their check. They are not served; a second fetch may be good.
  kCorruption,
  // The local disk or kernel refused (EIO, EROFS, ...), or what a tree shows is not there at all.
  kIoError,
  // Our own bug, or an answer that the protocol does not allow.
  kInternal,
};

// The code's name as it appears in logs and --json output: "not_found", "throttled", ...
std::string_view status_code_name(StatusCode code);

// Success, or a code and one sentence for people. The sentence names what was tried; layers above
// add where, with with_context(). Success costs one null pointer. Copyable, thread-compatible.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message);

  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  bool ok() const { return failure_ == nullptr; }
  StatusCode code() const { return failure_ ? failure_->code : StatusCode::kOk; }
  // Empty for success.
  const std::string& message() const;
  // "not_found: no object 'a' in s3://b" or "ok".
  std::string to_string() const;

  // Returns this failure with "context: " in front of its message; success stays success.
  Status with_context(std::string_view context) const;

  // How long the other side asked to be left alone (HTTP's Retry-After). Nothing when it did not
  // say.
  std::optional<std::chrono::nanoseconds> retry_after() const {
    return failure_ ? failure_->retry_after : std::nullopt;
  }
  // Returns this failure with that request attached; success stays success.
  Status with_retry_after(std::chrono::nanoseconds pause) const;

  // Two statuses are equal when their codes are: messages are for people.
  friend bool operator==(const Status& a, StatusCode b) { return a.code() == b; }

 private:
  struct Failure {
    StatusCode code;
    std::string message;
    std::optional<std::chrono::nanoseconds> retry_after = {};
  };
  std::unique_ptr<Failure> failure_;
};

// True for the codes that a retry of the very same request may cure.
bool is_transient(StatusCode code);

template <class T>
using Result = std::expected<T, Status>;

// `return failure(StatusCode::kNotFound, "...")` from a function that returns Result<T>.
inline std::unexpected<Status> failure(StatusCode code, std::string message) {
  return std::unexpected<Status>(Status(code, std::move(message)));
}
inline std::unexpected<Status> failure(Status status) {
  return std::unexpected<Status>(std::move(status));
}

}  // namespace millrace

// The only two macros of the error path. Both return from the enclosing function on failure; it may
// return Status or Result<T>.
#define MR_RETURN_IF_ERROR(expr)                                   \
  do {                                                             \
    if (::millrace::Status mr_status_ = (expr); !mr_status_.ok())  \
      return ::millrace::detail::Propagate{std::move(mr_status_)}; \
  } while (false)

#define MR_ASSIGN_OR_RETURN(declaration, expr) \
  MR_ASSIGN_OR_RETURN_(MR_JOIN_(mr_result_, __LINE__), declaration, expr)
#define MR_ASSIGN_OR_RETURN_(result, declaration, expr)                         \
  auto result = (expr);                                                         \
  if (!result) return ::millrace::detail::Propagate{std::move(result).error()}; \
  declaration = std::move(*result)
#define MR_JOIN_(a, b) MR_JOIN2_(a, b)
#define MR_JOIN2_(a, b) a##b

namespace millrace::detail {

// Converts to whichever failure type the enclosing function returns.
struct Propagate {
  Status status;
  operator Status() && { return std::move(status); }
  template <class T>
  operator std::expected<T, Status>() && {
    return std::unexpected<Status>(std::move(status));
  }
};

}  // namespace millrace::detail
