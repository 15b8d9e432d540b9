#include "objectstore/s3/container_credentials.h"

#include <arpa/inet.h>

#include <algorithm>

#include <fmt/format.h>

#include "objectstore/s3/credentials_file.h"
#include "objectstore/s3/credentials_json.h"

namespace millrace::s3 {
namespace {

constexpr TryLimits kContainerTries{.tries_max = 3, .try_time_max = std::chrono::seconds(2)};
constexpr std::string_view kEcsHost = "http://169.254.170.2";

// The host of "scheme://host[:port]/...", without brackets; empty when there is none, or when user
// information could make one host look like another.
std::string host_of(std::string_view rest) {
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  if (authority.find_first_of("@\\") != std::string_view::npos) return "";
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    return end == std::string_view::npos ? "" : std::string(authority.substr(1, end - 1));
  }
  return std::string(authority.substr(0, authority.find(':')));
}

bool may_be_clear(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    const bool loopback = (ntohl(v4.s_addr) >> 24) == 127;
    return loopback || host == "169.254.170.2" || host == "169.254.170.23";
  }
  return host == "localhost" || host == "::1" || host == "fd00:ec2::23";
}

}  // namespace

Status check_container_url(std::string_view url) {
  const bool printable =
      std::ranges::all_of(url, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (printable && url.starts_with("https://") && !host_of(url.substr(8)).empty()) return {};
  if (printable && url.starts_with("http://") && may_be_clear(host_of(url.substr(7)))) return {};
  return Status(StatusCode::kInvalidArgument,
                "AWS_CONTAINER_CREDENTIALS_FULL_URI must be an https URL, or http to a loopback "
                "address, 169.254.170.2, 169.254.170.23 or [fd00:ec2::23]");
}

Result<std::string> ContainerCredentials::url() const {
  if (const auto relative = environment_.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")) {
    if (!relative->starts_with('/')) {
      return failure(StatusCode::kInvalidArgument,
                     "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI must start with '/'");
    }
    return std::string(kEcsHost) + *relative;
  }
  if (const auto full = environment_.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
    MR_RETURN_IF_ERROR(check_container_url(*full));
    return *full;
  }
  return failure(StatusCode::kNotFound, "AWS_CONTAINER_CREDENTIALS_FULL_URI is not set");
}

Result<std::string> ContainerCredentials::authorization() const {
  if (const auto path = environment_.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
    auto token = read_token_file(*path);
    if (token) return token;
    const StatusCode code = token.error() == StatusCode::kNotFound ? StatusCode::kInvalidArgument
                                                                   : token.error().code();
    return failure(code,
                   fmt::format("container endpoint: AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: {}",
                               token.error().message()));
  }
  std::string token = environment_.get_or("AWS_CONTAINER_AUTHORIZATION_TOKEN", "");
  if (std::ranges::any_of(token, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
    return failure(StatusCode::kInvalidArgument,
                   "AWS_CONTAINER_AUTHORIZATION_TOKEN contains a line break");
  }
  return token;
}

Result<Credentials> ContainerCredentials::fetch(const RequestContext& context) {
  MR_ASSIGN_OR_RETURN(std::string target, url());
  MR_ASSIGN_OR_RETURN(std::string token, authorization());
  const std::string source =
      fmt::format("container endpoint {}", target.substr(0, target.find('?')));
  HttpRequest request;
  request.url = std::move(target);
  request.headers.push_back({"Accept", "application/json"});
  if (!token.empty()) request.headers.push_back({"Authorization", std::move(token)});
  request.response_bytes_max = 64 * kKiB;
  auto answer = send_with_tries(context, transport_, request, kContainerTries);
  if (!answer) return failure(answer.error().with_context(source));
  if (answer->status != 200) {
    const bool ours = answer->status < 500 && answer->status != 429;
    return failure(ours ? StatusCode::kUnauthenticated : StatusCode::kUnavailable,
                   fmt::format("{} answered HTTP {}", source, answer->status));
  }
  return parse_credentials_json(answer->body.text(), CredentialJson::kService, source);
}

}  // namespace millrace::s3
