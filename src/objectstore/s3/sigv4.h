#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "objectstore/s3/credentials.h"
#include "platform/digest.h"
#include "platform/http_client.h"

namespace millrace::s3 {

// For bodies whose hash is not part of the signature, where TLS already protects them.
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

// What a signature covers. Path and query are encoded already and are sent exactly so.
struct SigningRequest {
  HttpMethod method = HttpMethod::kGet;
  std::string_view host;
  std::string_view path;
  std::string_view query;
  std::string_view payload_sha256;  // Hexadecimal, or kUnsignedPayload.
};

// AWS Signature Version 4. Keeps the derived key of the day, since deriving it costs four hashes.
// Safe from any thread.
class SigV4Signer {
 public:
  explicit SigV4Signer(std::string service);

  // Adds x-amz-date, x-amz-content-sha256, the session token if any, and authorization to
  // `headers`. All x-amz-* headers and content-md5 that are there are signed; host is signed but
  // not added, as the HTTP client sends it.
  void sign(const Credentials& credentials, std::string_view region, WallTime now,
            const SigningRequest& request, std::vector<HttpHeader>& headers);

 private:
  struct DerivedKey {
    std::string secret;
    std::string region;
    std::string day;
    Sha256Digest key;
  };

  Sha256Digest signing_key(const Credentials& credentials, std::string_view region,
                           std::string_view day);

  const std::string service_;
  Mutex mutex_;
  std::shared_ptr<const DerivedKey> derived_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace::s3
