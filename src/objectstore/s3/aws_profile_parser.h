#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "objectstore/s3/aws_profile.h"

namespace millrace::s3 {

// The two files write a profile's section differently.
enum class AwsFileKind {
  kConfig,       // [profile x], [default], [services x]; other sections are skipped.
  kCredentials,  // [x]
};

// Adds what `text` says to `profiles`, in the AWS SDKs' reading of INI: comments start a line, or
// follow white space in a value; an indented line continues the value above with a line break, or
// is nested when that value is empty; names have no case; the last of two equal names wins; a
// profile may stand in several sections. kInvalidArgument names `file` and line, never a value.
Status parse_aws_file(std::string_view text, AwsFileKind kind, const std::string& file,
                      AwsProfiles& profiles);

}  // namespace millrace::s3
