#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "objectstore/s3/credentials_environment.h"

namespace millrace::s3 {

// AWS_REGION, AWS_DEFAULT_REGION, the profile's region, else empty. `profile` may be empty, for the
// one that AWS_PROFILE selects. Fails only when a profile file cannot be read.
Result<std::string> resolve_region(const Environment& environment, std::string_view profile = {});

// AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, the profile's services section, the profile's
// endpoint_url, else nothing. Nothing at all when AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is "true".
// `service` is in lower case: "s3".
Result<std::optional<std::string>> resolve_endpoint_url(const Environment& environment,
                                                        std::string_view service,
                                                        std::string_view profile = {});

}  // namespace millrace::s3
