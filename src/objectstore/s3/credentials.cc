#include "objectstore/s3/credentials.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "objectstore/s3/credentials_time.h"

namespace millrace::s3 {
namespace {

// An access key id is no secret, but whole ones in logs invite copying. Short ones are test keys.
std::string shortened(std::string_view key) {
  if (key.size() < 12) return "***";
  return fmt::format("{}...{}", key.substr(0, 4), key.substr(key.size() - 4));
}

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

Status check_part(std::string_view value, std::string_view part, const std::string& source) {
  if (is_plain(value)) return {};
  return Status(StatusCode::kInvalidArgument,
                fmt::format("the {} from {} contains a space, a line break or another character "
                            "that cannot occur in one: check for stray white space",
                            part, source));
}

}  // namespace

std::string Credentials::describe() const {
  std::string text = fmt::format("key {} from {}", shortened(access_key), source);
  if (expires) text += fmt::format(", until {}", format_iso8601(*expires));
  return text;
}

Status check_credentials(const Credentials& credentials) {
  const std::string& source = credentials.source;
  if (credentials.access_key.empty() || credentials.secret_key.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("the credentials from {} lack the {}", source,
                              credentials.access_key.empty() ? "access key" : "secret key"));
  }
  MR_RETURN_IF_ERROR(check_part(credentials.access_key, "access key", source));
  MR_RETURN_IF_ERROR(check_part(credentials.secret_key, "secret key", source));
  return check_part(credentials.session_token, "session token", source);
}

}  // namespace millrace::s3
