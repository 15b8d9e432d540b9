// SigV4 as S3 verifies it, with no benefit of the doubt.
#pragma once

#include <optional>
#include <string>

#include "tests/servers/http_server.h"
#include "tests/servers/strict_s3_answer.h"
#include "tests/servers/strict_s3_server.h"

namespace millrace::testing {

// What a request is measured against.
struct S3SigningPolicy {
  S3Credentials credentials;
  std::string region;
  std::string redirect_to_region;  // See StrictS3Quirks.
  std::optional<S3Time> credentials_expire_at;
  S3Time now;
};

// Success: the request carries a valid Authorization header for its every signed part, and its
// body is the one that was signed. Failure: the error that S3 answers. Only headers are looked at;
// presigned URLs are refused.
S3Result<void> verify_signature(const HttpRequest& request, const S3SigningPolicy& policy);

}  // namespace millrace::testing
