#include "objectstore/s3/assume_role_credentials.h"

#include "objectstore/s3/web_identity_credentials.h"

namespace millrace::s3 {

Result<Credentials> assume_role(const RequestContext& context, const CredentialTransport& transport,
                                const StsEndpoint& endpoint, const SignFunction& sign,
                                const Credentials& base, const AssumedRole& role) {
  StsParameters parameters = {
      {"RoleArn", role.role_arn},
      {"RoleSessionName",
       role.session_name.empty() ? made_up_session_name(transport.random) : role.session_name}};
  if (!role.external_id.empty()) parameters.emplace_back("ExternalId", role.external_id);
  if (!role.duration_seconds.empty()) {
    parameters.emplace_back("DurationSeconds", role.duration_seconds);
  }
  const SigningScope scope{
      .region = endpoint.region, .service = "sts", .time = transport.clock.wall_now()};
  return call_sts(
      context, transport, endpoint, "AssumeRole", parameters,
      [&](HttpRequest& request) { return sign(base, scope, request); }, role.source);
}

}  // namespace millrace::s3
