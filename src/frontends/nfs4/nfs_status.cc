#include "frontends/nfs4/nfs_status.h"

namespace millrace {

NfsStatus nfs_status_of(const Status& status, NfsAttempt attempt) {
  switch (status.code()) {
    case StatusCode::kOk:
      return NfsStatus::kOk;
    case StatusCode::kNotFound:
      if (attempt == NfsAttempt::kData) return NfsStatus::kIo;
      return attempt == NfsAttempt::kName ? NfsStatus::kNoEnt : NfsStatus::kStale;
    case StatusCode::kPreconditionFailed:
      // The object of a live bucket was replaced.
      return NfsStatus::kStale;
    case StatusCode::kInvalidArgument:
      return NfsStatus::kInval;
    case StatusCode::kPermissionDenied:
    case StatusCode::kUnauthenticated:
      return NfsStatus::kAccess;
    case StatusCode::kUnsupported:
      return NfsStatus::kRofs;
    case StatusCode::kUnavailable:
    case StatusCode::kThrottled:
    case StatusCode::kConflict:
    case StatusCode::kResourceExhausted:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kCancelled:
      return NfsStatus::kDelay;
    case StatusCode::kCorruption:
    case StatusCode::kIoError:
      return NfsStatus::kIo;
    case StatusCode::kInternal:
      break;
  }
  return NfsStatus::kServerFault;
}

}  // namespace millrace
