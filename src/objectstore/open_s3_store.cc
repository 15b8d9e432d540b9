#include "objectstore/open_s3_store.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hex.h"
#include "objectstore/s3/aws_region.h"
#include "objectstore/s3/cached_credentials.h"
#include "objectstore/s3/credentials_chain.h"
#include "objectstore/s3/s3_object_store.h"
#include "objectstore/s3/sigv4.h"
#include "platform/digest.h"

namespace millrace {
namespace {

s3::Addressing addressing_of(const StoreUrl& url) {
  const std::string path_style = url.parameter("path_style", "auto");
  if (path_style == "true") return s3::Addressing::kPath;
  if (path_style == "false") return s3::Addressing::kVirtualHost;
  return s3::Addressing::kAuto;
}

Result<s3::S3Options> s3_options(const StoreUrl& url, const s3::Environment& environment) {
  const std::string profile = url.parameter("profile");
  s3::S3Options options;
  options.bucket = url.root;
  options.addressing = addressing_of(url);
  options.anonymous = url.parameter("anonymous") == "true";
  options.checksums = url.parameter("checksum", "crc32c") != "none";
  options.ca_bundle = url.parameter("ca_bundle");
  options.endpoint = url.parameter("endpoint");
  if (options.endpoint.empty()) {
    MR_ASSIGN_OR_RETURN(const auto endpoint, s3::resolve_endpoint_url(environment, "s3", profile));
    options.endpoint = endpoint.value_or("");
  }
  while (options.endpoint.ends_with('/'))
    options.endpoint.pop_back();
  std::string region = url.parameter("region");
  if (region.empty()) {
    MR_ASSIGN_OR_RETURN(region, s3::resolve_region(environment, profile));
  }
  if (!region.empty()) options.region = region;
  return options;
}

// Signs requests to STS, for profiles that assume a role.
s3::SignFunction sts_signer() {
  auto signer = std::make_shared<s3::SigV4Signer>("sts");
  return [signer](const s3::Credentials& credentials, const s3::SigningScope& scope,
                  HttpRequest& request) -> Status {
    const std::string_view url = request.url;
    const auto scheme = url.find("://");
    if (scheme == std::string_view::npos) {
      return {StatusCode::kInvalidArgument,
              fmt::format("'{}' is no address of a token service", url)};
    }
    const std::string_view rest = url.substr(scheme + 3);
    const auto slash = std::min(rest.find('/'), rest.size());
    const auto question = std::min(rest.find('?'), rest.size());
    const std::string_view path = rest.substr(slash, question - std::min(slash, question));
    const std::string digest = to_hex(sha256(request.body.bytes()));
    const s3::SigningRequest signing{
        request.method, rest.substr(0, std::min(slash, question)), path.empty() ? "/" : path,
        question < rest.size() ? rest.substr(question + 1) : std::string_view(), digest};
    signer->sign(credentials, scope.region, scope.time, signing, request.headers);
    return {};
  };
}

s3::Environment variables_of(const StoreEnvironment& environment) {
  return s3::Environment([lookup = environment.variables](std::string_view name) {
    return lookup(std::string(name));
  });
}

std::unique_ptr<s3::CredentialChain> credentials_of(const StoreUrl& url, const std::string& region,
                                                    const StoreEnvironment& environment) {
  return s3::default_credential_chain(
      {.transport = {environment.http, environment.clock, environment.random},
       .environment = variables_of(environment),
       .given = std::nullopt,
       .profile = url.parameter("profile"),
       .region = region,
       .sign = sts_signer()});
}

}  // namespace

Result<std::shared_ptr<ObjectStore>> open_s3_store(const StoreUrl& url,
                                                   const StoreEnvironment& environment,
                                                   std::shared_ptr<RetryControl> retries) {
  MR_ASSIGN_OR_RETURN(const s3::S3Options options, s3_options(url, variables_of(environment)));
  std::shared_ptr<s3::CachedCredentials> credentials;
  if (!options.anonymous) {
    credentials = std::make_shared<s3::CachedCredentials>(
        credentials_of(url, options.region, environment), environment.clock, environment.random);
  }
  const s3::S3Environment parts{environment.http, environment.clock, environment.random,
                                environment.buffers};
  return std::make_shared<s3::S3ObjectStore>(options, std::move(credentials), parts,
                                             std::move(retries));
}

Result<std::string> describe_s3_credentials(const RequestContext& context, const StoreUrl& url,
                                            const StoreEnvironment& environment) {
  MR_ASSIGN_OR_RETURN(const s3::S3Options options, s3_options(url, variables_of(environment)));
  if (options.anonymous) return "none: requests are anonymous";
  MR_ASSIGN_OR_RETURN(const s3::Credentials credentials,
                      credentials_of(url, options.region, environment)->fetch(context));
  return credentials.describe();
}

}  // namespace millrace
