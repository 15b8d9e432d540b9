#include "objectstore/s3/aws_region.h"

#include <algorithm>

#include "objectstore/s3/aws_profile.h"

namespace millrace::s3 {

Result<std::string> resolve_region(const Environment& environment, std::string_view profile) {
  if (auto region = environment.get("AWS_REGION")) return *region;
  if (auto region = environment.get("AWS_DEFAULT_REGION")) return *region;
  MR_ASSIGN_OR_RETURN(const AwsProfiles profiles, load_aws_profiles(environment));
  const AwsSection* section = profiles.find(selected_profile(environment, profile));
  if (section == nullptr) return std::string();
  return section->get("region").value_or("");
}

Result<std::optional<std::string>> resolve_endpoint_url(const Environment& environment,
                                                        std::string_view service,
                                                        std::string_view profile) {
  if (environment.is_true("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")) {
    return std::optional<std::string>();
  }
  std::string variable = "AWS_ENDPOINT_URL_" + std::string(service);
  std::ranges::transform(variable, variable.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  if (auto url = environment.get(variable)) return url;
  if (auto url = environment.get("AWS_ENDPOINT_URL")) return url;
  MR_ASSIGN_OR_RETURN(const AwsProfiles profiles, load_aws_profiles(environment));
  return profiles.endpoint_url(selected_profile(environment, profile), service);
}

}  // namespace millrace::s3
