#include "app/bucket_setting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

std::string bucket_refusal(std::string_view text) {
  const auto parsed = parse_bucket_settings(text);
  EXPECT_FALSE(parsed) << text;
  return parsed ? "" : parsed.error().message();
}

TEST(BucketSettingTest, NamesAndUrls) {
  const auto buckets =
      parse_bucket_settings(
          "train=s3://bucket/p?endpoint=http://127.0.0.1:9000, other=file:///x%2Cy")
          .value();
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].name, "train");
  EXPECT_EQ(buckets[0].url.root, "bucket");
  EXPECT_EQ(buckets[0].url.prefix, "p");
  EXPECT_EQ(buckets[0].url.parameter("endpoint"), "http://127.0.0.1:9000");
  EXPECT_EQ(buckets[1].name, "other");
  EXPECT_EQ(buckets[1].url.root, "/x,y");
  EXPECT_TRUE(parse_bucket_settings("none").value().empty());
  EXPECT_EQ(parse_bucket_settings("none=file:///x").value().size(), 1u);
}

TEST(BucketSettingTest, MistakesAreNamed) {
  using ::testing::HasSubstr;
  EXPECT_THAT(bucket_refusal(""), HasSubstr("expected NAME=URL"));
  EXPECT_THAT(bucket_refusal("s3://bucket/p"), HasSubstr("expected NAME=URL"));
  EXPECT_THAT(bucket_refusal("a=file:///x,"), HasSubstr("'' is not accepted"));
  EXPECT_THAT(bucket_refusal("a=file:///x,a=file:///y"), HasSubstr("'a' is given twice"));
  EXPECT_THAT(bucket_refusal("..=file:///x"), HasSubstr("'..' cannot be"));
  EXPECT_THAT(bucket_refusal("a/b=file:///x"), HasSubstr("'a/b' cannot be"));
  EXPECT_THAT(bucket_refusal("a=s4://x"), HasSubstr("'s4'"));
  std::string many = "b0=file:///x";
  for (std::size_t n = 1; n <= kBucketSettingsMax; ++n)
    many += ",b" + std::to_string(n) + "=file:///x";
  EXPECT_THAT(bucket_refusal(many), HasSubstr("more than 64"));
}

}  // namespace
}  // namespace millrace
