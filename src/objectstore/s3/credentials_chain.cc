#include "objectstore/s3/credentials_chain.h"

#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "objectstore/s3/aws_region.h"
#include "objectstore/s3/container_credentials.h"
#include "objectstore/s3/environment_credentials.h"
#include "objectstore/s3/imds_credentials.h"
#include "objectstore/s3/profile_credentials.h"
#include "objectstore/s3/static_credentials.h"
#include "objectstore/s3/web_identity_credentials.h"

namespace millrace::s3 {

Result<Credentials> CredentialChain::fetch(const RequestContext& context) {
  CredentialProvider* winner = nullptr;
  {
    MutexLock lock(mutex_);
    winner = winner_;
  }
  if (winner == nullptr) return fetch_first(context);
  auto result = winner->fetch(context);
  if (!result && result.error() == StatusCode::kNotFound) {
    // It worked before, so this is an outage and not a missing setting.
    return failure(StatusCode::kUnavailable,
                   fmt::format("{}: {}", winner->name(), result.error().message()));
  }
  if (result) MR_RETURN_IF_ERROR(check_credentials(*result));
  return result;
}

Result<Credentials> CredentialChain::fetch_first(const RequestContext& context) {
  std::string tried;
  for (const auto& provider : providers_) {
    auto result = provider->fetch(context);
    if (!result && result.error() == StatusCode::kNotFound) {
      if (!tried.empty()) tried += ", ";
      tried += fmt::format("{} ({})", provider->name(), result.error().message());
      continue;
    }
    if (!result) return failure(result.error().with_context("AWS credentials"));
    MR_RETURN_IF_ERROR(check_credentials(*result));
    log_info("AWS credentials found",
             {{"provider", provider->name()}, {"credentials", result->describe()}});
    MutexLock lock(mutex_);
    if (winner_ == nullptr) winner_ = provider.get();
    return result;
  }
  return failure(StatusCode::kUnauthenticated,
                 fmt::format("no AWS credentials found: tried {}; set AWS_ACCESS_KEY_ID and "
                             "AWS_SECRET_ACCESS_KEY, or run `aws configure`, or give the machine "
                             "or container a role",
                             tried));
}

std::string CredentialChain::name() const {
  MutexLock lock(mutex_);
  return winner_ == nullptr ? "AWS credential chain" : winner_->name();
}

std::unique_ptr<CredentialChain> default_credential_chain(CredentialSources sources) {
  const CredentialTransport transport = sources.transport;
  const Environment& environment = sources.environment;
  // A profile file that cannot be read is reported by the profile provider, if it comes to that.
  const std::string region = sources.region.empty()
                                 ? resolve_region(environment, sources.profile).value_or("")
                                 : sources.region;
  std::vector<std::unique_ptr<CredentialProvider>> providers;
  if (sources.given) {
    providers.push_back(std::make_unique<StaticCredentials>(std::move(*sources.given)));
  }
  if (sources.profile.empty()) {
    providers.push_back(std::make_unique<EnvironmentCredentials>(environment));
    providers.push_back(std::make_unique<WebIdentityCredentials>(transport, environment, region));
  }
  providers.push_back(std::make_unique<ProfileCredentials>(
      ProfileCredentialsOptions{.transport = transport,
                                .environment = environment,
                                .profile = sources.profile,
                                .region = region,
                                .sign = std::move(sources.sign)}));
  providers.push_back(std::make_unique<ContainerCredentials>(transport, environment));
  providers.push_back(std::make_unique<ImdsCredentials>(transport, environment));
  return std::make_unique<CredentialChain>(std::move(providers));
}

}  // namespace millrace::s3
