#pragma once

#include <string>
#include <utility>

#include "objectstore/s3/credentials.h"
#include "objectstore/s3/credentials_environment.h"
#include "objectstore/s3/credentials_sts.h"

namespace millrace::s3 {

// A role that a token file entitles to (IRSA on Kubernetes, OIDC on CI runners).
struct WebIdentityRole {
  std::string role_arn;
  std::string token_file;
  std::string session_name;  // Empty: one is made up.
  std::string source;
};

// Trades the token, read now, for temporary credentials by STS AssumeRoleWithWebIdentity.
Result<Credentials> assume_role_with_web_identity(const RequestContext& context,
                                                  const CredentialTransport& transport,
                                                  const StsEndpoint& endpoint,
                                                  const WebIdentityRole& role);

// AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE, and AWS_ROLE_SESSION_NAME. `region` picks the STS
// endpoint and may be empty.
class WebIdentityCredentials final : public CredentialProvider {
 public:
  WebIdentityCredentials(CredentialTransport transport, Environment environment, std::string region)
      : transport_(transport), environment_(std::move(environment)), region_(std::move(region)) {}

  Result<Credentials> fetch(const RequestContext& context) override;
  std::string name() const override { return "web identity"; }

 private:
  const CredentialTransport transport_;
  const Environment environment_;
  const std::string region_;
};

// "millrace-<random>": STS wants a name for its audit log.
std::string made_up_session_name(Random& random);

}  // namespace millrace::s3
