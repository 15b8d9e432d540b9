#include "objectstore/s3/s3_error.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include <fmt/format.h>

namespace millrace::s3 {
namespace {

struct Meaning {
  std::string_view code;
  StatusCode status;
  std::string_view advice;  // What to do, where the store's own words leave that open.
};

// Sorted by what the caller can do. Codes that are not here are judged by their HTTP status.
constexpr std::array kMeanings = {
    Meaning{"NoSuchKey", StatusCode::kNotFound, ""},
    Meaning{"NoSuchBucket", StatusCode::kNotFound,
            "check the bucket's name, and that the endpoint and region are its own"},
    Meaning{"NoSuchUpload", StatusCode::kNotFound, ""},

    Meaning{"PreconditionFailed", StatusCode::kPreconditionFailed, ""},
    Meaning{"ConditionalRequestConflict", StatusCode::kConflict, ""},
    Meaning{"OperationAborted", StatusCode::kConflict, ""},

    Meaning{"SlowDown", StatusCode::kThrottled, ""},
    Meaning{"ServiceUnavailable", StatusCode::kThrottled, ""},
    Meaning{"TooManyRequests", StatusCode::kThrottled, ""},
    Meaning{"RequestLimitExceeded", StatusCode::kThrottled, ""},
    Meaning{"Throttling", StatusCode::kThrottled, ""},
    Meaning{"ThrottlingException", StatusCode::kThrottled, ""},

    Meaning{"InternalError", StatusCode::kUnavailable, ""},
    Meaning{"RequestTimeout", StatusCode::kUnavailable, ""},
    Meaning{"IncompleteBody", StatusCode::kUnavailable, ""},

    // The bytes were damaged on their way; the store kept nothing.
    Meaning{"BadDigest", StatusCode::kCorruption, ""},
    Meaning{"InvalidDigest", StatusCode::kCorruption, ""},
    Meaning{"XAmzContentSHA256Mismatch", StatusCode::kCorruption, ""},
    Meaning{"XAmzContentChecksumMismatch", StatusCode::kCorruption, ""},

    Meaning{"AccessDenied", StatusCode::kPermissionDenied,
            "the credentials are valid but may not do this: check the bucket policy"},
    Meaning{"AllAccessDisabled", StatusCode::kPermissionDenied, ""},
    Meaning{"AccountProblem", StatusCode::kPermissionDenied, ""},
    Meaning{"InvalidAccessKeyId", StatusCode::kUnauthenticated,
            "the store does not know this access key: check AWS_ACCESS_KEY_ID or the profile"},
    Meaning{"SignatureDoesNotMatch", StatusCode::kUnauthenticated,
            "the secret key is wrong: check AWS_SECRET_ACCESS_KEY or the profile"},
    Meaning{"ExpiredToken", StatusCode::kUnauthenticated, "get new temporary credentials"},
    Meaning{"InvalidToken", StatusCode::kUnauthenticated, "get new temporary credentials"},
    Meaning{"RequestTimeTooSkewed", StatusCode::kUnauthenticated, "set this machine's clock"},
    Meaning{"AuthorizationHeaderMalformed", StatusCode::kInvalidArgument,
            "set the bucket's region with the region parameter or AWS_REGION"},
    Meaning{"PermanentRedirect", StatusCode::kInvalidArgument,
            "set the bucket's endpoint and region"},

    Meaning{"InvalidRange", StatusCode::kInvalidArgument, ""},
    Meaning{"KeyTooLongError", StatusCode::kInvalidArgument, ""},
    Meaning{"EntityTooLarge", StatusCode::kInvalidArgument, ""},
    Meaning{"EntityTooSmall", StatusCode::kInvalidArgument, ""},
    Meaning{"InvalidBucketName", StatusCode::kInvalidArgument, ""},
    Meaning{"QuotaExceeded", StatusCode::kResourceExhausted, ""},
    Meaning{"NotImplemented", StatusCode::kUnsupported, ""},
    Meaning{"MethodNotAllowed", StatusCode::kUnsupported, ""},
};

StatusCode code_for_http_status(int status) {
  switch (status) {
    case 401:
      return StatusCode::kUnauthenticated;
    case 403:
      return StatusCode::kPermissionDenied;
    case 404:
      return StatusCode::kNotFound;
    case 405:
    case 501:
      return StatusCode::kUnsupported;
    case 408:
      return StatusCode::kUnavailable;
    case 409:
      return StatusCode::kConflict;
    case 412:
      return StatusCode::kPreconditionFailed;
    case 416:
      return StatusCode::kInvalidArgument;
    case 429:
      return StatusCode::kThrottled;
    default:
      break;
  }
  if (status >= 500) return StatusCode::kUnavailable;
  if (status >= 400) return StatusCode::kInvalidArgument;
  // A redirect or another success that the operation does not have.
  return StatusCode::kInternal;
}

const Meaning* find_meaning(std::string_view code) {
  const auto found = std::ranges::find(kMeanings, code, &Meaning::code);
  return found == kMeanings.end() ? nullptr : &*found;
}

// Text from outside goes into messages and logs: one line, printable, of bounded length.
std::string printable(std::string_view text) {
  constexpr std::size_t kCharactersMax = 300;
  std::string out(text.substr(0, kCharactersMax));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return out;
}

}  // namespace

S3Error read_error(const HttpResponse& response) {
  return {response.status, parse_error(response.body.text())};
}

Status status_of(const S3Error& error, const HttpResponse& response, std::string_view what) {
  const Meaning* meaning = find_meaning(error.document.code);
  const StatusCode code = meaning ? meaning->status : code_for_http_status(error.http_status);
  std::string message(what);
  if (error.document.code.empty()) {
    message += fmt::format(": the store answered {}", error.http_status);
    if (code == StatusCode::kNotFound) message += " (not found)";
    if (code == StatusCode::kPermissionDenied) {
      message += " (forbidden): check the credentials and the bucket policy";
    }
  } else {
    message += fmt::format(": {} ({})", printable(error.document.code), error.http_status);
    if (!error.document.message.empty()) message += ": " + printable(error.document.message);
  }
  if (meaning && !meaning->advice.empty()) message += fmt::format("; {}", meaning->advice);
  Status status(code, std::move(message));

  const std::string_view retry_after = response.headers.get("retry-after");
  int seconds = 0;
  const auto [end, failed] =
      std::from_chars(retry_after.data(), retry_after.data() + retry_after.size(), seconds);
  if (!retry_after.empty() && failed == std::errc{} && seconds > 0) {
    status = std::move(status).with_retry_after(std::chrono::seconds(seconds));
  }
  return status;
}

}  // namespace millrace::s3
