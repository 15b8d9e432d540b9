#include "objectstore/retry_write_token.h"

#include <fmt/format.h>

#include "objectstore/retry_loop.h"

namespace millrace {

namespace {

Status outcome_unknown(const ObjectKey& key, const Status& error) {
  return Status(StatusCode::kUnavailable, fmt::format("it is unknown whether '{}' was written: {}",
                                                      key.value(), error.to_string()));
}

// What a refusal means after an attempt that may have been carried out.
Result<ObjectInfo> settle(ObjectStore& inner, RetryControl& control, const RequestContext& context,
                          const ObjectKey& key, std::uint64_t size, const std::string& token,
                          const Status& refusal, bool maybe_replaced) {
  auto info = retry_call(control, context,
                         [&](const RequestContext& attempt) { return inner.head(attempt, key); });
  if (!info) {
    const StatusCode code = info.error().code();
    // Nothing is there, so nothing of ours stands in the way.
    if (code == StatusCode::kNotFound) {
      return failure(Status(StatusCode::kPreconditionFailed, refusal.message()));
    }
    if (code == StatusCode::kDeadlineExceeded || code == StatusCode::kCancelled) {
      return failure(std::move(info).error());
    }
    return failure(outcome_unknown(key, info.error()));
  }
  const auto found = info->metadata.find(std::string(kWriteTokenName));
  if (found == info->metadata.end() || found->second != token || info->size != size) {
    if (maybe_replaced) return failure(Status(StatusCode::kConflict, refusal.message()));
    if (refusal == StatusCode::kPreconditionFailed) return failure(refusal);
    return failure(Status(StatusCode::kPreconditionFailed, refusal.message()));
  }
  info->metadata.erase(found);
  return info;
}

bool says_refused(StatusCode code) {
  // Stores answer a condition on an object that is gone with kNotFound, and a race with kConflict.
  return code == StatusCode::kPreconditionFailed || code == StatusCode::kConflict ||
         code == StatusCode::kNotFound;
}

}  // namespace

Result<ObjectInfo> put_with_token(ObjectStore& inner, RetryControl& control,
                                  const RequestContext& context, const ObjectKey& key, Slice data,
                                  const PutOptions& options) {
  const std::string token = control.random().token();
  PutOptions marked = options;
  marked.metadata[std::string(kWriteTokenName)] = token;

  bool maybe_written = false;
  auto info =
      retry_call(control, context, [&](const RequestContext& attempt) -> Result<ObjectInfo> {
        auto result = inner.put(attempt, key, data, marked);
        // Throttled and corrupt requests were not carried out.
        if (!result && result.error() == StatusCode::kUnavailable) maybe_written = true;
        return result;
      });
  if (info) {
    info->metadata.erase(std::string(kWriteTokenName));
    return info;
  }
  const StatusCode code = info.error().code();
  // A refused condition is settled even on the first attempt: load balancers repeat requests by
  // themselves, and may have repeated this one.
  if (code == StatusCode::kPreconditionFailed || (maybe_written && says_refused(code))) {
    const bool maybe_replaced =
        maybe_written && options.condition.kind == WriteCondition::Kind::kIfIdentity;
    return settle(inner, control, context, key, data.size(), token, info.error(), maybe_replaced);
  }
  if (!maybe_written) return info;
  if (code == StatusCode::kUnavailable || code == StatusCode::kDeadlineExceeded ||
      code == StatusCode::kCancelled) {
    return info;
  }
  return failure(outcome_unknown(key, info.error()));
}

}  // namespace millrace
