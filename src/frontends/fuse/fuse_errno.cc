#include "frontends/fuse/fuse_errno.h"

#include <cerrno>

namespace millrace {
namespace {

int fuse_data_errno(const Status& status, NodePlace place) {
  switch (status.code()) {
    case StatusCode::kCancelled:
      return EINTR;
    case StatusCode::kPreconditionFailed:
    case StatusCode::kNotFound:
      // A live bucket may change under its readers. A version never does: there it is damage.
      return place == NodePlace::kBuckets ? ESTALE : EIO;
    default:
      return EIO;
  }
}

}  // namespace

int fuse_errno(const Status& status, FuseAttempt attempt, NodePlace place) {
  if (attempt == FuseAttempt::kData) return fuse_data_errno(status, place);
  switch (status.code()) {
    case StatusCode::kNotFound:
      return attempt == FuseAttempt::kName ? ENOENT : ESTALE;
    case StatusCode::kPreconditionFailed:
      return ESTALE;
    case StatusCode::kInvalidArgument:
      return EINVAL;
    case StatusCode::kPermissionDenied:
    case StatusCode::kUnauthenticated:
      return EACCES;
    case StatusCode::kUnsupported:
      return EOPNOTSUPP;
    case StatusCode::kCancelled:
      return EINTR;
    case StatusCode::kResourceExhausted:
      // Elsewhere it is a disk that is full, or a queue.
      return attempt == FuseAttempt::kOpen ? ENFILE : EIO;
    case StatusCode::kOk:
    case StatusCode::kUnavailable:
    case StatusCode::kThrottled:
    case StatusCode::kConflict:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kCorruption:
    case StatusCode::kIoError:
    case StatusCode::kInternal:
      break;
  }
  return EIO;
}

}  // namespace millrace
