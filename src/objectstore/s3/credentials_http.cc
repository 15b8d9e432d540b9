#include "objectstore/s3/credentials_http.h"

#include <algorithm>

#include <fmt/format.h>

namespace millrace::s3 {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(100);

bool worth_another_try(const Result<HttpResponse>& answer) {
  if (answer) return answer->status == 429 || answer->status >= 500;
  // The deadline here is that of one try: the caller's own is checked before.
  return is_transient(answer.error().code()) || answer.error() == StatusCode::kDeadlineExceeded;
}

}  // namespace

Result<HttpResponse> send_with_tries(const RequestContext& context,
                                     const CredentialTransport& transport,
                                     const HttpRequest& request, TryLimits limits) {
  Clock& clock = transport.clock;
  for (int tries = 1;; ++tries) {
    MR_RETURN_IF_ERROR(context.check(clock));
    HttpRequest attempt = request;
    attempt.fresh_connection = tries > 1;
    Result<HttpResponse> answer = transport.http.perform(
        context.with_deadline(clock.now() + limits.try_time_max), std::move(attempt));
    if (!worth_another_try(answer)) return answer;
    MR_RETURN_IF_ERROR(context.check(clock));
    if (tries >= limits.tries_max) {
      if (answer) return answer;
      return failure(StatusCode::kUnavailable,
                     fmt::format("no answer in {} tries: {}", tries, answer.error().message()));
    }
    const auto pause = std::chrono::duration_cast<Duration>(kPause * (1 << (tries - 1)) *
                                                            (0.5 + transport.random.uniform()));
    clock.sleep_until(std::min(clock.now() + pause, context.deadline()), &context.cancellation());
  }
}

}  // namespace millrace::s3
