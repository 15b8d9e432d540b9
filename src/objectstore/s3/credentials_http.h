#pragma once

#include "base/clock.h"
#include "base/random.h"
#include "platform/http_client.h"

namespace millrace::s3 {

// What a provider needs to ask somebody over the network. All must outlive the provider.
struct CredentialTransport {
  HttpClient& http;
  Clock& clock;
  Random& random;
};

struct TryLimits {
  int tries_max = 3;
  Duration try_time_max = std::chrono::seconds(5);
};

// Sends the request until it is answered with something other than 429 or 5xx, at most `tries_max`
// times, each at most `try_time_max` long, with a short jittered pause between. Any HTTP status is
// a success. kUnavailable when no try was answered; the context's own end is reported as that.
Result<HttpResponse> send_with_tries(const RequestContext& context,
                                     const CredentialTransport& transport,
                                     const HttpRequest& request, TryLimits limits);

}  // namespace millrace::s3
