#pragma once

#include <string_view>

#include "objectstore/object_store.h"
#include "objectstore/retry_control.h"

namespace millrace {

// Metadata that marks a conditional put as this call's own. Reserved: callers may not use the name,
// and RetryingObjectStore::head() does not show it.
inline constexpr std::string_view kWriteTokenName = "millrace-write-token";

// Puts under a condition, with retries. Such a put is not idempotent: when an answer is lost, the
// next attempt meets the object that the first one wrote and is refused. So each call writes a
// token of its own into the metadata, and a refusal is settled by looking whose token is there:
//
//   ours      success, with that object's info;
//   another's kPreconditionFailed; but kConflict for if_identity after an attempt whose outcome is
//             unknown, since that may have been stored and replaced by whoever saw it;
//   no answer kUnavailable: the message says that the outcome is unknown.
//
// Once an attempt's outcome is unknown, no failure but kUnavailable, kDeadlineExceeded, kCancelled
// and the settled kPreconditionFailed or kConflict is returned: others would claim that nothing was
// stored. Blocks.
Result<ObjectInfo> put_with_token(ObjectStore& inner, RetryControl& control,
                                  const RequestContext& context, const ObjectKey& key, Slice data,
                                  const PutOptions& options);

}  // namespace millrace
