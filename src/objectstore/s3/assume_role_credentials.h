#pragma once

#include <string>

#include "objectstore/s3/credentials.h"
#include "objectstore/s3/credentials_sts.h"

namespace millrace::s3 {

// A role that other credentials may take on.
struct AssumedRole {
  std::string role_arn;
  std::string session_name;      // Empty: one is made up.
  std::string external_id;       // May be empty.
  std::string duration_seconds;  // Empty: STS's default, one hour.
  std::string source;
};

// Takes on the role by STS AssumeRole, signed with `base` by `sign`, which must not be null.
Result<Credentials> assume_role(const RequestContext& context, const CredentialTransport& transport,
                                const StsEndpoint& endpoint, const SignFunction& sign,
                                const Credentials& base, const AssumedRole& role);

}  // namespace millrace::s3
