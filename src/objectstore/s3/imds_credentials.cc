#include "objectstore/s3/imds_credentials.h"

#include <strings.h>

#include <algorithm>

#include <fmt/format.h>

#include "objectstore/s3/credentials_json.h"

namespace millrace::s3 {
namespace {

constexpr TryLimits kImdsTries{.tries_max = 2, .try_time_max = std::chrono::seconds(1)};
constexpr Duration kFetchTimeMax = std::chrono::seconds(4);
constexpr std::string_view kRolePath = "/latest/meta-data/iam/security-credentials/";

// A role's name, and a session token, become part of a request: nothing else may come with them.
bool is_one_word(std::string_view text) {
  return !text.empty() && text.size() <= 4096 &&
         std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

// The first line: the service lists one role a line, and an instance has one.
std::string_view first_line(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && (text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  return text;
}

Status unexpected_status(std::string_view what, int status) {
  const bool later = status == 429 || status >= 500;
  return Status(later ? StatusCode::kUnavailable : StatusCode::kUnauthenticated,
                fmt::format("EC2 instance metadata answered HTTP {} for {}", status, what));
}

}  // namespace

std::string ImdsCredentials::endpoint() const {
  if (auto url = environment_.get("AWS_EC2_METADATA_SERVICE_ENDPOINT")) {
    while (url->ends_with('/'))
      url->pop_back();
    return *url;
  }
  const auto mode = environment_.get("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
  const bool v6 = mode && strcasecmp(mode->c_str(), "ipv6") == 0;
  return v6 ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
}

Result<std::string> ImdsCredentials::session_token(const RequestContext& context,
                                                   const std::string& endpoint) const {
  HttpRequest request;
  request.method = HttpMethod::kPut;
  request.url = endpoint + "/latest/api/token";
  // Used for one fetch only. A short life limits what a leaked one is worth.
  request.headers.push_back({"X-aws-ec2-metadata-token-ttl-seconds", "60"});
  request.response_bytes_max = 8 * kKiB;
  auto answer = send_with_tries(context, transport_, request, kImdsTries);
  if (!answer) {
    MR_RETURN_IF_ERROR(context.check(transport_.clock));
    return failure(StatusCode::kNotFound, fmt::format("nothing answers at {}", endpoint));
  }
  if (answer->status == 403 || answer->status == 404 || answer->status == 405) {
    return failure(StatusCode::kNotFound,
                   fmt::format("{} gives no session token (HTTP {})", endpoint, answer->status));
  }
  if (answer->status != 200) return failure(unexpected_status("a session token", answer->status));
  if (!is_one_word(answer->body.text())) {
    return failure(StatusCode::kInternal,
                   fmt::format("{} gave a malformed session token", endpoint));
  }
  return std::string(answer->body.text());
}

Result<HttpResponse> ImdsCredentials::read(const RequestContext& context, const std::string& url,
                                           const std::string& token) const {
  HttpRequest request;
  request.url = url;
  request.headers.push_back({"X-aws-ec2-metadata-token", token});
  request.response_bytes_max = 64 * kKiB;
  auto answer = send_with_tries(context, transport_, request, kImdsTries);
  if (!answer) return failure(answer.error().with_context("EC2 instance metadata"));
  return answer;
}

Result<Credentials> ImdsCredentials::fetch(const RequestContext& context) {
  if (environment_.is_true("AWS_EC2_METADATA_DISABLED")) {
    return failure(StatusCode::kNotFound, "AWS_EC2_METADATA_DISABLED is true");
  }
  const std::string base = endpoint();
  const RequestContext limited = context.with_deadline(transport_.clock.now() + kFetchTimeMax);
  auto token = session_token(limited, base);
  if (!token) return failure(token.error());

  MR_ASSIGN_OR_RETURN(const HttpResponse listing,
                      read(limited, base + std::string(kRolePath), *token));
  if (listing.status == 404) {
    return failure(StatusCode::kNotFound, "the instance has no IAM role");
  }
  if (listing.status != 200) return failure(unexpected_status("the role's name", listing.status));
  const std::string_view role = first_line(listing.body.text());
  if (!is_one_word(role) || role.find_first_of("/?#") != std::string_view::npos) {
    return failure(StatusCode::kInternal, "EC2 instance metadata gave a malformed role name");
  }

  const std::string source = fmt::format("EC2 instance role {}", role);
  MR_ASSIGN_OR_RETURN(const HttpResponse answer,
                      read(limited, fmt::format("{}{}{}", base, kRolePath, role), *token));
  if (answer.status != 200) return failure(unexpected_status("credentials", answer.status));
  return parse_credentials_json(answer.body.text(), CredentialJson::kService, source);
}

}  // namespace millrace::s3
