#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "objectstore/s3/credentials.h"
#include "objectstore/s3/credentials_environment.h"
#include "objectstore/s3/credentials_http.h"

namespace millrace::s3 {

// What a request is signed for.
struct SigningScope {
  std::string region;
  std::string service;  // "sts"
  WallTime time;
};

// Adds the SigV4 headers for the request, its body included. Passed in, so that the credentials do
// not depend on the signer, which depends on them.
using SignFunction =
    std::function<Status(const Credentials&, const SigningScope&, HttpRequest& request)>;

// AWS's Security Token Service, at one endpoint.
struct StsEndpoint {
  std::string url;     // Without a slash at the end.
  std::string region;  // For signatures; never empty.
};

// AWS_ENDPOINT_URL_STS, else the region's own (sts.<region>.amazonaws.com), else, with no region,
// the global one. kInvalidArgument when the region could not be part of a host name.
Result<StsEndpoint> sts_endpoint(const Environment& environment, std::string_view region);

// A form of named values, as STS takes them.
using StsParameters = std::vector<std::pair<std::string, std::string>>;

// Calls an action that answers with temporary credentials, three tries at most. `sign` may be null
// for actions that need no signature. kUnauthenticated and kPermissionDenied carry STS's own words.
Result<Credentials> call_sts(const RequestContext& context, const CredentialTransport& transport,
                             const StsEndpoint& endpoint, std::string_view action,
                             const StsParameters& parameters,
                             const std::function<Status(HttpRequest&)>& sign,
                             std::string_view source);

// The credentials of an answer to `action`, or what its <Error> says. Foreign bytes: never trusted.
Result<Credentials> parse_sts_answer(int http_status, std::string_view body,
                                     std::string_view action, std::string_view source);

}  // namespace millrace::s3
