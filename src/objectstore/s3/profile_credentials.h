#pragma once

#include <string>
#include <utility>
#include <vector>

#include "objectstore/s3/aws_profile.h"
#include "objectstore/s3/credentials.h"
#include "objectstore/s3/credentials_environment.h"
#include "objectstore/s3/credentials_sts.h"

namespace millrace::s3 {

struct ProfileCredentialsOptions {
  CredentialTransport transport;
  Environment environment;
  std::string profile;  // Empty: AWS_PROFILE, else "default".
  std::string region;   // For STS; empty: the profile's own, else STS's global endpoint.
  SignFunction sign;    // Null: profiles that assume a role with other credentials are refused.
};

// The profile of the shared files, read anew at every fetch. Within it, in this order: role_arn
// with source_profile or credential_source; role_arn with web_identity_token_file; keys;
// credential_process. Single sign-on is refused with a sentence that says what to do instead.
//
// "Not configured" is a default profile that does not exist, or one that holds only other settings.
// A profile that was asked for by name and does not exist is an error.
class ProfileCredentials final : public CredentialProvider {
 public:
  explicit ProfileCredentials(ProfileCredentialsOptions options) : options_(std::move(options)) {}

  Result<Credentials> fetch(const RequestContext& context) override;
  std::string name() const override { return "shared profile files"; }

 private:
  // A profile, and those that led to it, so that a circle of source_profile is noticed.
  struct Visit {
    const AwsProfiles& profiles;
    std::string name;
    std::vector<std::string> path;
  };

  Result<Credentials> resolve(const RequestContext& context, const Visit& visit) const;
  Result<Credentials> resolve_role(const RequestContext& context, const Visit& visit,
                                   const AwsSection& profile) const;
  Result<Credentials> base_of_role(const RequestContext& context, const Visit& visit,
                                   const AwsSection& profile) const;
  Result<Credentials> from_credential_source(const RequestContext& context,
                                             const AwsSetting& setting) const;
  Result<StsEndpoint> endpoint_for(const AwsSection& profile) const;

  const ProfileCredentialsOptions options_;
};

}  // namespace millrace::s3
