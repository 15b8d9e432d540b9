#include "tests/servers/strict_s3_signature.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

#include <fmt/format.h>

#include "base/ascii.h"
#include "tests/servers/strict_s3_digest.h"

namespace millrace::testing {
namespace {

constexpr std::chrono::minutes kSkewMax{15};
constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

struct Authorization {
  std::string access_key;
  std::string date;
  std::string region;
  std::string service;
  std::string terminator;
  std::string signed_headers;
  std::string signature;
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = 0; end != std::string_view::npos; begin = end + 1) {
    end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
  }
  return parts;
}

S3Result<Authorization> parse_authorization(const std::string& header) {
  const auto malformed = [](std::string why) {
    return s3_error(400, "AuthorizationHeaderMalformed",
                    "The authorization header is malformed; " + why);
  };
  if (!header.starts_with(kAlgorithm) || header.size() == kAlgorithm.size() ||
      header[kAlgorithm.size()] != ' ') {
    return s3_error(400, "InvalidRequest",
                    "The authorization mechanism is not supported: use AWS4-HMAC-SHA256.");
  }
  Authorization result;
  std::string credential;
  for (const std::string& part : split(std::string_view(header).substr(kAlgorithm.size()), ',')) {
    const size_t begin = part.find_first_not_of(' ');
    const size_t equals = part.find('=');
    if (begin == std::string::npos || equals == std::string::npos) return malformed("no '='.");
    const std::string name = part.substr(begin, equals - begin);
    const std::string value = part.substr(equals + 1);
    if (name == "Credential")
      credential = value;
    else if (name == "SignedHeaders")
      result.signed_headers = value;
    else if (name == "Signature")
      result.signature = value;
    else
      return malformed("unknown field " + name + ".");
  }
  const std::vector<std::string> scope = split(credential, '/');
  if (scope.size() != 5) return malformed("the Credential needs five fields.");
  result.access_key = scope[0];
  result.date = scope[1];
  result.region = scope[2];
  result.service = scope[3];
  result.terminator = scope[4];
  if (result.service != "s3" || result.terminator != "aws4_request") {
    return malformed("the scope must end in /s3/aws4_request.");
  }
  if (result.signed_headers.empty() || result.signature.size() != 64) {
    return malformed("SignedHeaders or Signature is missing.");
  }
  return result;
}

std::optional<S3Time> parse_amz_date(const std::string& text) {
  tm utc{};
  const char* end = text.size() == 16 ? strptime(text.c_str(), "%Y%m%dT%H%M%SZ", &utc) : nullptr;
  if (!end || *end != '\0') return std::nullopt;
  return std::chrono::system_clock::from_time_t(timegm(&utc));
}

S3Result<void> check_identity(const HttpRequest& request, const Authorization& authorization,
                              const S3SigningPolicy& policy) {
  if (authorization.access_key != policy.credentials.access_key) {
    return s3_error(403, "InvalidAccessKeyId",
                    "The AWS Access Key Id you provided does not exist in our records.");
  }
  const std::string* token = request.headers.find("x-amz-security-token");
  if ((token ? *token : "") != policy.credentials.session_token) {
    return s3_error(400, "InvalidToken", "The provided token is malformed or otherwise invalid.");
  }
  if (policy.credentials_expire_at && policy.now >= *policy.credentials_expire_at) {
    return s3_error(400, "ExpiredToken", "The provided token has expired.");
  }
  return {};
}

S3Result<void> check_date(const HttpRequest& request, const Authorization& authorization,
                          S3Time now) {
  const std::string text = request.headers.get("x-amz-date");
  const std::optional<S3Time> date = parse_amz_date(text);
  if (!date) {
    return s3_error(403, "AccessDenied", "AWS authentication requires a valid x-amz-date header");
  }
  if (text.substr(0, 8) != authorization.date) {
    return s3_error(400, "AuthorizationHeaderMalformed",
                    "The date of the Credential is not that of x-amz-date.");
  }
  if (*date - now > kSkewMax || now - *date > kSkewMax) {
    auto error =
        s3_error(403, "RequestTimeTooSkewed",
                 "The difference between the request time and the current time is too large.");
    error.error().elements = {{"RequestTime", text},
                              {"ServerTime", iso_date(now)},
                              {"MaxAllowedSkewMilliseconds", "900000"}};
    return error;
  }
  return {};
}

S3Result<void> check_region(const Authorization& authorization, const S3SigningPolicy& policy) {
  if (!policy.redirect_to_region.empty()) {
    if (authorization.region == policy.redirect_to_region) return {};
    auto error = s3_error(301, "PermanentRedirect",
                          "The bucket must be addressed using the specified endpoint.");
    error.error().elements = {
        {"Endpoint", fmt::format("s3.{}.amazonaws.com", policy.redirect_to_region)}};
    error.error().headers.add("x-amz-bucket-region", policy.redirect_to_region);
    return error;
  }
  if (authorization.region == policy.region) return {};
  auto error = s3_error(400, "AuthorizationHeaderMalformed",
                        fmt::format("The authorization header is malformed; the region '{}' is "
                                    "wrong; expecting '{}'",
                                    authorization.region, policy.region));
  error.error().elements = {{"Region", policy.region}};
  return error;
}

// Every header that could change the meaning of the request has to be under the signature.
S3Result<void> check_signed_headers(const HttpRequest& request,
                                    const std::vector<std::string>& names) {
  if (!std::is_sorted(names.begin(), names.end()) ||
      std::adjacent_find(names.begin(), names.end()) != names.end() ||
      std::any_of(names.begin(), names.end(), [](const auto& n) { return n != lower_case(n); })) {
    return s3_error(400, "AuthorizationHeaderMalformed",
                    "SignedHeaders must be lower case, sorted and unique.");
  }
  std::vector<std::string> needed = {"host", "x-amz-date"};
  for (const auto& [name, value] : request.headers) {
    if (lower_case(name).starts_with("x-amz-") || lower_case(name) == "content-md5") {
      needed.push_back(lower_case(name));
    }
  }
  std::string missing;
  for (const std::string& name : needed) {
    if (std::find(names.begin(), names.end(), name) == names.end()) missing += name + " ";
  }
  if (missing.empty()) return {};
  auto error = s3_error(403, "AccessDenied",
                        "There were headers present in the request which were not signed");
  error.error().elements = {{"HeadersNotSigned", missing}};
  return error;
}

S3Result<void> check_payload_hash(const HttpRequest& request) {
  const std::string claimed = request.headers.get("x-amz-content-sha256");
  if (claimed == "UNSIGNED-PAYLOAD") return {};
  if (claimed.starts_with("STREAMING-")) {
    return s3_error(501, "NotImplemented", "aws-chunked bodies are not served: " + claimed);
  }
  const bool is_hash =
      claimed.size() == 64 && claimed.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_hash) {
    return s3_error(400, "InvalidArgument",
                    "x-amz-content-sha256 must be UNSIGNED-PAYLOAD or a valid sha256 value.");
  }
  if (claimed == to_hex(sha256(request.body))) return {};
  return s3_error(400, "XAmzContentSHA256Mismatch",
                  "The provided 'x-amz-content-sha256' header does not match what was computed.");
}

// S3 re-encodes the decoded path once and leaves "//", "." and ".." alone.
std::string canonical_query(const HttpQuery& query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& [name, value] : query) {
    pairs.emplace_back(uri_encode(name, false), uri_encode(value, false));
  }
  std::sort(pairs.begin(), pairs.end());
  std::string text;
  for (const auto& [name, value] : pairs) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, value);
  }
  return text;
}

// All values of that header, joined by commas, with runs of spaces collapsed.
std::string canonical_value(const HttpHeaders& headers, const std::string& wanted) {
  std::string text;
  bool first = true;
  for (const auto& [name, value] : headers) {
    if (lower_case(name) != wanted) continue;
    if (!first) text += ',';
    first = false;
    for (size_t i = 0; i < value.size(); ++i) {
      if (value[i] != ' ' || i == 0 || value[i - 1] != ' ') text += value[i];
    }
  }
  return text;
}

S3Result<void> check_signature(const HttpRequest& request, const Authorization& authorization,
                               const std::vector<std::string>& names, const std::string& secret) {
  std::string canonical =
      fmt::format("{}\n{}\n{}\n", request.method, uri_encode(request.path, true),
                  canonical_query(request.query));
  for (const std::string& name : names) {
    canonical += fmt::format("{}:{}\n", name, canonical_value(request.headers, name));
  }
  canonical += fmt::format("\n{}\n{}", authorization.signed_headers,
                           request.headers.get("x-amz-content-sha256"));
  const std::string scope = fmt::format("{}/{}/{}/{}", authorization.date, authorization.region,
                                        authorization.service, authorization.terminator);
  const std::string to_sign =
      fmt::format("{}\n{}\n{}\n{}", kAlgorithm, request.headers.get("x-amz-date"), scope,
                  to_hex(sha256(canonical)));
  std::string key = "AWS4" + secret;
  for (const std::string& part : split(scope, '/')) {
    key = hmac_sha256(key, part);
  }
  if (to_hex(hmac_sha256(key, to_sign)) == authorization.signature) return {};
  auto error = s3_error(403, "SignatureDoesNotMatch",
                        "The request signature we calculated does not match the signature you "
                        "provided. Check your key and signing method.");
  error.error().elements = {{"AWSAccessKeyId", authorization.access_key},
                            {"StringToSign", to_sign},
                            {"SignatureProvided", authorization.signature},
                            {"CanonicalRequest", canonical}};
  return error;
}

}  // namespace

S3Result<void> verify_signature(const HttpRequest& request, const S3SigningPolicy& policy) {
  if (request.headers.count("Authorization") != 1 || request.headers.count("Host") != 1) {
    return s3_error(403, "AccessDenied", "Access Denied: exactly one Authorization and Host.");
  }
  if (!request.headers.has("x-amz-content-sha256")) {
    return s3_error(400, "InvalidRequest",
                    "Missing required header for this request: x-amz-content-sha256");
  }
  const auto authorization = parse_authorization(request.headers.get("Authorization"));
  if (!authorization) return std::unexpected(authorization.error());
  const std::vector<std::string> names = split(authorization->signed_headers, ';');
  // The order decides which error a request with several faults gets.
  S3Result<void> result = check_identity(request, *authorization, policy);
  if (result) result = check_region(*authorization, policy);
  if (result) result = check_date(request, *authorization, policy.now);
  if (result) result = check_signed_headers(request, names);
  if (result) {
    result = check_signature(request, *authorization, names, policy.credentials.secret_key);
  }
  if (result) result = check_payload_hash(request);
  return result;
}

}  // namespace millrace::testing
