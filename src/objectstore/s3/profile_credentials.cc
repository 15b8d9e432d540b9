#include "objectstore/s3/profile_credentials.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "objectstore/s3/assume_role_credentials.h"
#include "objectstore/s3/container_credentials.h"
#include "objectstore/s3/environment_credentials.h"
#include "objectstore/s3/imds_credentials.h"
#include "objectstore/s3/process_credentials.h"
#include "objectstore/s3/web_identity_credentials.h"

namespace millrace::s3 {
namespace {

constexpr std::size_t kRoleDepthMax = 8;

std::unexpected<Status> wrong(const std::string& profile, std::string_view what) {
  return failure(StatusCode::kInvalidArgument, fmt::format("profile '{}': {}", profile, what));
}

// The keys written in the profile itself; kNotFound when there are none.
Result<Credentials> keys_of(const std::string& name, const AwsSection& profile) {
  const AwsSetting* access_key = profile.find("aws_access_key_id");
  const AwsSetting* secret_key = profile.find("aws_secret_access_key");
  const bool has_access = access_key != nullptr && !access_key->value.empty();
  const bool has_secret = secret_key != nullptr && !secret_key->value.empty();
  if (!has_access && !has_secret) {
    return failure(StatusCode::kNotFound, fmt::format("profile '{}' holds no keys", name));
  }
  if (!has_access || !has_secret) {
    const AwsSetting& there = has_access ? *access_key : *secret_key;
    return wrong(name, fmt::format("{} has {} but no {}", there.place(),
                                   has_access ? "aws_access_key_id" : "aws_secret_access_key",
                                   has_access ? "aws_secret_access_key" : "aws_access_key_id"));
  }
  return Credentials{.access_key = access_key->value,
                     .secret_key = secret_key->value,
                     .session_token = profile.get("aws_session_token").value_or(""),
                     .expires = std::nullopt,
                     .source = fmt::format("profile '{}' in {}", name, access_key->file)};
}

bool uses_single_sign_on(const AwsSection& profile) {
  return profile.get("sso_session") || profile.get("sso_start_url") ||
         profile.get("sso_account_id");
}

// kNotFound deep inside a profile is not "not configured": the profile asked for it.
Status as_configured(const Status& status) {
  if (status.code() != StatusCode::kNotFound) return status;
  return Status(StatusCode::kUnauthenticated, status.message());
}

}  // namespace

Result<Credentials> ProfileCredentials::fetch(const RequestContext& context) {
  MR_ASSIGN_OR_RETURN(const AwsProfiles profiles, load_aws_profiles(options_.environment));
  const std::string name = selected_profile(options_.environment, options_.profile);
  if (profiles.find(name) == nullptr) {
    const bool asked_for =
        !options_.profile.empty() || options_.environment.get("AWS_PROFILE").has_value();
    if (profiles.files.empty()) {
      return failure(asked_for ? StatusCode::kInvalidArgument : StatusCode::kNotFound,
                     fmt::format("no profile '{}': HOME is not set, so there are no files", name));
    }
    return failure(asked_for ? StatusCode::kInvalidArgument : StatusCode::kNotFound,
                   fmt::format("no profile '{}' in {}", name, fmt::join(profiles.files, " or ")));
  }
  return resolve(context, {.profiles = profiles, .name = name, .path = {}});
}

Result<Credentials> ProfileCredentials::resolve(const RequestContext& context,
                                                const Visit& visit) const {
  const AwsSection& profile = *visit.profiles.find(visit.name);
  if (profile.get("role_arn")) {
    auto result = resolve_role(context, visit, profile);
    if (!result) return failure(as_configured(result.error()));
    return result;
  }
  auto keys = keys_of(visit.name, profile);
  if (keys || keys.error() != StatusCode::kNotFound) return keys;
  if (const auto command = profile.get("credential_process")) {
    return run_credential_process(context, options_.transport.clock, *command,
                                  fmt::format("credential_process of profile '{}'", visit.name));
  }
  if (uses_single_sign_on(profile)) {
    return failure(StatusCode::kUnsupported,
                   fmt::format("profile '{0}' uses single sign-on, which is not supported here: "
                               "run `eval \"$(aws configure export-credentials --profile {0} "
                               "--format env)\"`, or set credential_process to that command "
                               "without --format",
                               visit.name));
  }
  return keys;
}

Result<Credentials> ProfileCredentials::resolve_role(const RequestContext& context,
                                                     const Visit& visit,
                                                     const AwsSection& profile) const {
  const std::string role_arn = *profile.get("role_arn");
  const std::string session_name = profile.get("role_session_name").value_or("");
  const std::string source = fmt::format("role {} of profile '{}'", role_arn, visit.name);
  MR_ASSIGN_OR_RETURN(const StsEndpoint endpoint, endpoint_for(profile));
  const auto token_file = profile.get("web_identity_token_file");
  if (token_file && !profile.get("source_profile") && !profile.get("credential_source")) {
    return assume_role_with_web_identity(context, options_.transport, endpoint,
                                         {.role_arn = role_arn,
                                          .token_file = *token_file,
                                          .session_name = session_name,
                                          .source = source});
  }
  if (profile.get("mfa_serial")) {
    return wrong(visit.name,
                 "mfa_serial needs somebody to type a code: run `aws configure "
                 "export-credentials` for this profile instead");
  }
  if (!options_.sign) return wrong(visit.name, "assuming a role is not available here");
  MR_ASSIGN_OR_RETURN(const Credentials base, base_of_role(context, visit, profile));
  MR_RETURN_IF_ERROR(check_credentials(base));
  return assume_role(context, options_.transport, endpoint, options_.sign, base,
                     {.role_arn = role_arn,
                      .session_name = session_name,
                      .external_id = profile.get("external_id").value_or(""),
                      .duration_seconds = profile.get("duration_seconds").value_or(""),
                      .source = source});
}

Result<Credentials> ProfileCredentials::base_of_role(const RequestContext& context,
                                                     const Visit& visit,
                                                     const AwsSection& profile) const {
  const AwsSetting* source_profile = profile.find("source_profile");
  const AwsSetting* credential_source = profile.find("credential_source");
  if ((source_profile == nullptr) == (credential_source == nullptr)) {
    return wrong(visit.name, fmt::format("{}: role_arn needs exactly one of source_profile, "
                                         "credential_source and web_identity_token_file",
                                         profile.find("role_arn")->place()));
  }
  if (credential_source != nullptr) return from_credential_source(context, *credential_source);

  const std::string& next = source_profile->value;
  // A profile may name itself: then its own keys are meant.
  if (next == visit.name) return keys_of(visit.name, profile);
  if (visit.profiles.find(next) == nullptr) {
    return wrong(visit.name, fmt::format("{}: source_profile '{}' does not exist",
                                         source_profile->place(), next));
  }
  Visit below{.profiles = visit.profiles, .name = next, .path = visit.path};
  below.path.push_back(visit.name);
  if (std::ranges::find(below.path, next) != below.path.end() ||
      below.path.size() > kRoleDepthMax) {
    return wrong(visit.name, fmt::format("{}: the source_profile settings go in a circle or more "
                                         "than {} deep",
                                         source_profile->place(), kRoleDepthMax));
  }
  return resolve(context, below);
}

Result<Credentials> ProfileCredentials::from_credential_source(const RequestContext& context,
                                                               const AwsSetting& setting) const {
  const std::string& wanted = setting.value;
  if (wanted == "Environment") return EnvironmentCredentials(options_.environment).fetch(context);
  if (wanted == "EcsContainer") {
    return ContainerCredentials(options_.transport, options_.environment).fetch(context);
  }
  if (wanted == "Ec2InstanceMetadata") {
    return ImdsCredentials(options_.transport, options_.environment).fetch(context);
  }
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("{}: credential_source must be Environment, EcsContainer or "
                             "Ec2InstanceMetadata",
                             setting.place()));
}

Result<StsEndpoint> ProfileCredentials::endpoint_for(const AwsSection& profile) const {
  const std::string region =
      options_.region.empty() ? profile.get("region").value_or("") : options_.region;
  return sts_endpoint(options_.environment, region);
}

}  // namespace millrace::s3
