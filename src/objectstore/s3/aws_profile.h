#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "objectstore/s3/credentials_environment.h"

namespace millrace::s3 {

// One "name = value" of a section, and where it stands.
struct AwsSetting {
  std::string value;
  // The indented "name = value" lines under an empty value ("s3 =" and what follows).
  std::map<std::string, std::string, std::less<>> nested;
  std::string file;
  int line = 0;

  // "/home/a/.aws/config:12", for errors.
  std::string place() const;
};

// A section's settings by name, in lower case.
class AwsSection {
 public:
  const AwsSetting* find(std::string_view name) const;
  // The value, or nothing when it is absent or empty.
  std::optional<std::string> get(std::string_view name) const;
  void set(std::string name, AwsSetting setting);
  void remove(std::string_view name);
  const std::map<std::string, AwsSetting, std::less<>>& all() const { return settings_; }

 private:
  std::map<std::string, AwsSetting, std::less<>> settings_;
};

// The shared files of the AWS tools, merged: settings of the credentials file win.
struct AwsProfiles {
  std::map<std::string, AwsSection, std::less<>> profiles;
  std::map<std::string, AwsSection, std::less<>> services;
  // The files looked for, whether or not they exist: for errors.
  std::vector<std::string> files;

  const AwsSection* find(std::string_view profile) const;
  // The service's own endpoint ("s3") from the profile's services section, else the profile's
  // endpoint_url, else nothing.
  std::optional<std::string> endpoint_url(std::string_view profile, std::string_view service) const;
};

// Reads AWS_CONFIG_FILE (~/.aws/config) and AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials), at
// most 1 MiB each. A file that does not exist counts as empty, and so does one at its default place
// that may not be read, with a warning. Anything else is kInvalidArgument or kPermissionDenied and
// names file and line. A secret key in a file that others may read is warned about.
Result<AwsProfiles> load_aws_profiles(const Environment& environment);

// `given` when it is not empty, else AWS_PROFILE, else "default".
std::string selected_profile(const Environment& environment, std::string_view given);

}  // namespace millrace::s3
