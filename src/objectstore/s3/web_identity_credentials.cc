#include "objectstore/s3/web_identity_credentials.h"

#include <fmt/format.h>

#include "objectstore/s3/credentials_file.h"

namespace millrace::s3 {

std::string made_up_session_name(Random& random) {
  return "millrace-" + random.token().substr(0, 16);
}

Result<Credentials> assume_role_with_web_identity(const RequestContext& context,
                                                  const CredentialTransport& transport,
                                                  const StsEndpoint& endpoint,
                                                  const WebIdentityRole& role) {
  auto token = read_token_file(role.token_file);
  if (!token) {
    // kNotFound would read as "not configured", and it is configured.
    const StatusCode code = token.error() == StatusCode::kNotFound ? StatusCode::kInvalidArgument
                                                                   : token.error().code();
    return failure(code, fmt::format("{}: {}", role.source, token.error().message()));
  }
  const StsParameters parameters = {
      {"RoleArn", role.role_arn},
      {"RoleSessionName",
       role.session_name.empty() ? made_up_session_name(transport.random) : role.session_name},
      {"WebIdentityToken", std::move(*token)}};
  return call_sts(context, transport, endpoint, "AssumeRoleWithWebIdentity", parameters, nullptr,
                  role.source);
}

Result<Credentials> WebIdentityCredentials::fetch(const RequestContext& context) {
  const auto token_file = environment_.get("AWS_WEB_IDENTITY_TOKEN_FILE");
  if (!token_file) {
    return failure(StatusCode::kNotFound, "AWS_WEB_IDENTITY_TOKEN_FILE is not set");
  }
  const auto role_arn = environment_.get("AWS_ROLE_ARN");
  if (!role_arn) {
    return failure(StatusCode::kInvalidArgument,
                   "AWS_WEB_IDENTITY_TOKEN_FILE is set but AWS_ROLE_ARN is not: set both, or "
                   "neither");
  }
  MR_ASSIGN_OR_RETURN(const StsEndpoint endpoint, sts_endpoint(environment_, region_));
  return assume_role_with_web_identity(
      context, transport_, endpoint,
      {.role_arn = *role_arn,
       .token_file = *token_file,
       .session_name = environment_.get_or("AWS_ROLE_SESSION_NAME", ""),
       .source = fmt::format("web identity role {}", *role_arn)});
}

}  // namespace millrace::s3
