#include "objectstore/s3/sigv4.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/hex.h"
#include "base/time_format.h"

namespace millrace::s3 {
namespace {

// The headers that take part, lower-cased and sorted.
std::vector<std::pair<std::string, std::string_view>> signed_headers(
    std::string_view host, const std::vector<HttpHeader>& headers) {
  std::vector<std::pair<std::string, std::string_view>> chosen;
  chosen.reserve(headers.size() + 1);
  chosen.emplace_back("host", host);
  for (const HttpHeader& header : headers) {
    std::string name = lower_case(header.name);
    if (name.starts_with("x-amz-") || name == "content-md5") {
      chosen.emplace_back(std::move(name), header.value);
    }
  }
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace

SigV4Signer::SigV4Signer(std::string service) : service_(std::move(service)) {}

Sha256Digest SigV4Signer::signing_key(const Credentials& credentials, std::string_view region,
                                      std::string_view day) {
  std::shared_ptr<const DerivedKey> known;
  {
    MutexLock lock(mutex_);
    known = derived_;
  }
  if (known && known->day == day && known->region == region &&
      known->secret == credentials.secret_key) {
    return known->key;
  }
  auto fresh = std::make_shared<DerivedKey>();
  fresh->secret = credentials.secret_key;
  fresh->region = region;
  fresh->day = day;
  Sha256Digest key = hmac_sha256(as_bytes("AWS4" + credentials.secret_key), as_bytes(day));
  for (const std::string_view step :
       {region, std::string_view(service_), std::string_view("aws4_request")}) {
    key = hmac_sha256(key, as_bytes(step));
  }
  fresh->key = key;
  MutexLock lock(mutex_);
  derived_ = std::move(fresh);
  return key;
}

void SigV4Signer::sign(const Credentials& credentials, std::string_view region, WallTime now,
                       const SigningRequest& request, std::vector<HttpHeader>& headers) {
  const std::string date = format_iso8601_basic(now);
  const std::string_view day = std::string_view(date).substr(0, 8);
  headers.push_back({"x-amz-date", date});
  headers.push_back({"x-amz-content-sha256", std::string(request.payload_sha256)});
  if (!credentials.session_token.empty()) {
    headers.push_back({"x-amz-security-token", credentials.session_token});
  }

  std::string canonical;
  canonical.reserve(1024);
  canonical.append(http_method_name(request.method)).append("\n");
  canonical.append(request.path).append("\n").append(request.query).append("\n");
  std::string names;
  for (const auto& [name, value] : signed_headers(request.host, headers)) {
    canonical.append(name).append(":").append(value).append("\n");
    if (!names.empty()) names.push_back(';');
    names += name;
  }
  canonical.append("\n").append(names).append("\n").append(request.payload_sha256);

  std::string scope;
  scope.append(day).append("/").append(region).append("/").append(service_).append("/aws4_request");
  std::string text;
  text.append("AWS4-HMAC-SHA256\n").append(date).append("\n").append(scope).append("\n");
  text.append(to_hex(sha256(as_bytes(canonical))));

  const Sha256Digest key = signing_key(credentials, region, day);
  std::string authorization;
  authorization.reserve(256);
  authorization.append("AWS4-HMAC-SHA256 Credential=").append(credentials.access_key);
  authorization.append("/").append(scope).append(", SignedHeaders=").append(names);
  authorization.append(", Signature=").append(to_hex(hmac_sha256(key, as_bytes(text))));
  headers.push_back({"authorization", std::move(authorization)});
}

}  // namespace millrace::s3
