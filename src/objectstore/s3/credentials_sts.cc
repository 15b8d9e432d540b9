#include "objectstore/s3/credentials_sts.h"

#include <algorithm>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "objectstore/s3/credentials_time.h"
#include "objectstore/s3/uri.h"

namespace millrace::s3 {
namespace {

constexpr TryLimits kStsTries{.tries_max = 3, .try_time_max = std::chrono::seconds(10)};
constexpr std::size_t kWordsMax = 300;  // How much of STS's own message goes into ours.

// An <Error> or an answer without one, turned into what the caller can do about it.
Status refusal(int http_status, const pugi::xml_document& document, std::string_view action,
               std::string_view source) {
  const auto error = document.document_element().child("Error");
  const std::string_view code = error.child("Code").text().get();
  const std::string_view words = error.child("Message").text().get();
  StatusCode kind = StatusCode::kUnauthenticated;
  if (http_status >= 500) kind = StatusCode::kUnavailable;
  if (http_status == 429 || code == "Throttling") kind = StatusCode::kThrottled;
  if (code == "AccessDenied") kind = StatusCode::kPermissionDenied;
  return Status(kind, fmt::format("{}: STS refused {} with HTTP {}{}{}{}{}", source, action,
                                  http_status, code.empty() ? "" : " ", code,
                                  words.empty() ? "" : ": ", words.substr(0, kWordsMax)));
}

}  // namespace

Result<StsEndpoint> sts_endpoint(const Environment& environment, std::string_view region) {
  const bool plain = std::ranges::all_of(
      region, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
  if (!plain) {
    return failure(
        StatusCode::kInvalidArgument,
        fmt::format("'{}' is not an AWS region: expected a name like eu-west-1", region));
  }
  StsEndpoint result;
  result.region = region.empty() ? "us-east-1" : std::string(region);
  if (auto url = environment.get("AWS_ENDPOINT_URL_STS")) {
    while (url->ends_with('/'))
      url->pop_back();
    result.url = *url;
  } else if (region.empty()) {
    result.url = "https://sts.amazonaws.com";
  } else {
    result.url = fmt::format("https://sts.{}.amazonaws.com{}", region,
                             region.starts_with("cn-") ? ".cn" : "");
  }
  return result;
}

Result<Credentials> call_sts(const RequestContext& context, const CredentialTransport& transport,
                             const StsEndpoint& endpoint, std::string_view action,
                             const StsParameters& parameters,
                             const std::function<Status(HttpRequest&)>& sign,
                             std::string_view source) {
  std::string body = fmt::format("Action={}&Version=2011-06-15", action);
  for (const auto& [name, value] : parameters) {
    body += fmt::format("&{}={}", name, encode_uri_component(value));
  }
  HttpRequest request;
  // The token travels in the body: URLs end up in the logs of proxies.
  request.method = HttpMethod::kPost;
  request.url = endpoint.url + "/";
  request.headers.push_back({"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"});
  request.body = Slice::from_string(std::move(body));
  request.response_bytes_max = 256 * kKiB;
  if (sign) MR_RETURN_IF_ERROR(sign(request));

  auto answer = send_with_tries(context, transport, request, kStsTries);
  if (!answer) {
    return failure(answer.error().with_context(
        fmt::format("{}: cannot reach STS at {}", source, endpoint.url)));
  }
  return parse_sts_answer(answer->status, answer->body.text(), action, source);
}

Result<Credentials> parse_sts_answer(int http_status, std::string_view body,
                                     std::string_view action, std::string_view source) {
  pugi::xml_document document;
  const auto parsed = document.load_buffer(body.data(), body.size());
  if (http_status != 200) {
    if (!parsed) document.reset();
    return failure(refusal(http_status, document, action, source));
  }
  const std::string result_name = fmt::format("{}Result", action);
  const auto given = document.document_element().child(result_name.c_str()).child("Credentials");
  Credentials result;
  result.access_key = given.child("AccessKeyId").text().get();
  result.secret_key = given.child("SecretAccessKey").text().get();
  result.session_token = given.child("SessionToken").text().get();
  result.expires = parse_iso8601(given.child("Expiration").text().get());
  result.source = source;
  if (!parsed || result.access_key.empty() || result.secret_key.empty() ||
      result.session_token.empty() || !result.expires) {
    return failure(StatusCode::kInternal,
                   fmt::format("{}: the answer of STS to {} holds no complete credentials: is the "
                               "endpoint really STS?",
                               source, action));
  }
  return result;
}

}  // namespace millrace::s3
