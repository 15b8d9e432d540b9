#include "cli/mount_options.h"

#include <gmock/gmock.h>

namespace millrace::cli {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

TEST(MountOptions, AValueInDoubleQuotesMayHaveCommas) {
  EXPECT_EQ(mount_helper_arguments({"all", "/mnt", "-o",
                                    R"(ro,buckets="a=s3://x,b=s3://y",store=s3://z,allow_other)"}),
            (Words{"--buckets", "a=s3://x,b=s3://y", "--store", "s3://z", "mount",
                   "--unless-mounted", "/mnt", "-o", "ro,allow_other"}));
  MountOptions options;
  EXPECT_TRUE(apply_mount_options(R"(x-who="a,b",opening="stateless",,ro)", options).ok());
  EXPECT_EQ(options.opening, "stateless");
}

TEST(MountOptions, QuotesThatStandElsewhereAreRefused) {
  for (const std::string option :
       {R"(buckets="a=s3://x,b=s3://y)", R"(buckets=a"="s3://x)", R"(store="s3://x"/y)"}) {
    const Words line = mount_helper_arguments({"all", "/mnt", "-o", "ro," + option});
    ASSERT_EQ(line, (Words{"mount", "--unless-mounted", "/mnt", "-o", "ro," + option}));
    MountOptions options;
    const Status refused = apply_mount_options(line.back(), options);
    EXPECT_EQ(refused, StatusCode::kInvalidArgument) << option;
    EXPECT_THAT(refused.message(), HasSubstr("double quotes stand around a whole value"));
  }
}

TEST(MountOptions, TheFlagsOfMountEightAreTaken) {
  EXPECT_EQ(mount_helper_arguments(
                {"a@v1", "/mnt", "-s", "-f", "-n", "-v", "-o", "ro", "-t", "millrace.sub"}),
            (Words{"mount", "--unless-mounted", "a@v1", "/mnt", "--sloppy", "--fake", "-o", "ro"}));
  EXPECT_EQ(mount_helper_arguments({"none", "/mnt", "-nfv"}),
            (Words{"mount", "--unless-mounted", "/mnt", "--fake"}));
  EXPECT_EQ(mount_helper_arguments({"a", "/mnt", "-N", "/proc/1/ns/mnt"}),
            (Words{"mount", "--unless-mounted", "a", "/mnt", "/proc/1/ns/mnt", "-N"}))
      << "it cannot be done, and is not passed over";
}

TEST(MountOptions, UnknownOnesAreRefusedUnlessSloppy) {
  MountOptions options;
  EXPECT_THAT(apply_mount_options("ro,whatever=1", options).message(),
              HasSubstr("unknown mount option 'whatever=1'"));
  options.sloppy = true;
  EXPECT_TRUE(apply_mount_options("ro,whatever=1", options).ok());
  EXPECT_FALSE(apply_mount_options("rw", options).ok());
}

}  // namespace
}  // namespace millrace::cli
