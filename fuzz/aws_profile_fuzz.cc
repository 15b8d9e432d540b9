#include "fuzz/fuzz_input.h"
#include "objectstore/s3/aws_profile_parser.h"

// Both kinds of AWS file. A refusal names the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  for (const auto kind : {s3::AwsFileKind::kConfig, s3::AwsFileKind::kCredentials}) {
    s3::AwsProfiles profiles;
    const Status status = s3::parse_aws_file(fuzz_text(data, size), kind, "credentials", profiles);
    fuzz_require(status.ok() || status.message().find("credentials") != std::string::npos);
  }
  return 0;
}
