#pragma once

#include <utility>

#include "objectstore/s3/credentials.h"
#include "objectstore/s3/credentials_environment.h"

namespace millrace::s3 {

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. One key without the other is an
// error and not a reason to go on.
class EnvironmentCredentials final : public CredentialProvider {
 public:
  explicit EnvironmentCredentials(Environment environment) : environment_(std::move(environment)) {}

  Result<Credentials> fetch(const RequestContext& context) override;
  std::string name() const override { return "environment"; }

 private:
  const Environment environment_;
};

}  // namespace millrace::s3
