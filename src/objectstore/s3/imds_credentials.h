#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "objectstore/s3/credentials.h"
#include "objectstore/s3/credentials_environment.h"
#include "objectstore/s3/credentials_http.h"

namespace millrace::s3 {

// The role of an EC2 instance, from its metadata service, version 2 only: version 1 needs no token
// and so gives the role to whoever can make a server fetch a URL.
//
// Outside EC2 nothing answers at that address. Each try ends after 1 s, there are two, and the
// whole fetch ends after 4 s, so that start-up never hangs on it; an absent service is "not
// configured". AWS_EC2_METADATA_DISABLED skips it, AWS_EC2_METADATA_SERVICE_ENDPOINT moves it.
class ImdsCredentials final : public CredentialProvider {
 public:
  ImdsCredentials(CredentialTransport transport, Environment environment)
      : transport_(transport), environment_(std::move(environment)) {}

  Result<Credentials> fetch(const RequestContext& context) override;
  std::string name() const override { return "EC2 instance metadata"; }

 private:
  std::string endpoint() const;
  Result<std::string> session_token(const RequestContext& context,
                                    const std::string& endpoint) const;
  Result<HttpResponse> read(const RequestContext& context, const std::string& url,
                            const std::string& token) const;

  const CredentialTransport transport_;
  const Environment environment_;
};

}  // namespace millrace::s3
