#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "objectstore/s3/credentials.h"
#include "objectstore/s3/credentials_environment.h"
#include "objectstore/s3/credentials_http.h"

namespace millrace::s3 {

// The endpoint that ECS and EKS Pod Identity give a container:
// AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, with AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE
// or AWS_CONTAINER_AUTHORIZATION_TOKEN, read again for every request.
class ContainerCredentials final : public CredentialProvider {
 public:
  ContainerCredentials(CredentialTransport transport, Environment environment)
      : transport_(transport), environment_(std::move(environment)) {}

  Result<Credentials> fetch(const RequestContext& context) override;
  std::string name() const override { return "container endpoint"; }

 private:
  Result<std::string> url() const;
  Result<std::string> authorization() const;

  const CredentialTransport transport_;
  const Environment environment_;
};

// Whether the token may be sent there: https to anywhere, http only to this machine or to the
// link-local addresses of ECS and EKS. Otherwise an environment variable could make us hand the
// token to anybody in clear.
Status check_container_url(std::string_view url);

}  // namespace millrace::s3
