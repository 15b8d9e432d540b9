#include "objectstore/s3/environment_credentials.h"

#include <fmt/format.h>

namespace millrace::s3 {

Result<Credentials> EnvironmentCredentials::fetch(const RequestContext&) {
  const auto access_key = environment_.get("AWS_ACCESS_KEY_ID");
  const auto secret_key = environment_.get("AWS_SECRET_ACCESS_KEY");
  if (!access_key && !secret_key) {
    return failure(StatusCode::kNotFound, "AWS_ACCESS_KEY_ID is not set");
  }
  if (!access_key || !secret_key) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("{} is set but {} is not: set both, or neither",
                               access_key ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                               access_key ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID"));
  }
  return Credentials{.access_key = *access_key,
                     .secret_key = *secret_key,
                     .session_token = environment_.get_or("AWS_SESSION_TOKEN", ""),
                     .expires = std::nullopt,
                     .source = "environment"};
}

}  // namespace millrace::s3
