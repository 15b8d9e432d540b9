#include "objectstore/s3/aws_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "objectstore/s3/aws_profile_parser.h"
#include "objectstore/s3/aws_region.h"
#include "tests/objectstore/s3/credentials_fakes.h"

namespace millrace::s3 {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

AwsProfiles parsed(std::string_view text, AwsFileKind kind) {
  AwsProfiles profiles;
  const Status status = parse_aws_file(text, kind, "f", profiles);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return profiles;
}

TEST(AwsProfileParser, ConfigFileWantsThePrefixAndCredentialsFileDoesNot) {
  const std::string_view text =
      "[default]\na=1\n[profile x]\na=2\n[y]\na=3\n[sso-session z]\na=4\n";
  const AwsProfiles config = parsed(text, AwsFileKind::kConfig);
  EXPECT_EQ(config.find("default")->get("a"), "1");
  EXPECT_EQ(config.find("x")->get("a"), "2");
  EXPECT_EQ(config.find("y"), nullptr);
  EXPECT_EQ(config.find("z"), nullptr);
  const AwsProfiles keys = parsed(text, AwsFileKind::kCredentials);
  EXPECT_EQ(keys.find("y")->get("a"), "3");
  EXPECT_EQ(keys.find("x"), nullptr);
}

TEST(AwsProfileParser, PrefixedDefaultReplacesPlainDefault) {
  const AwsProfiles config =
      parsed("[profile default]\na=1\n[default]\na=2\nb=2\n", AwsFileKind::kConfig);
  EXPECT_EQ(config.find("default")->get("a"), "1");
  EXPECT_EQ(config.find("default")->get("b"), std::nullopt);
}

TEST(AwsProfileParser, CommentsSpacesQuotesAndCase) {
  const AwsProfiles config = parsed(
      "\xEF\xBB\xBF# c\r\n; c\r\n[ profile \"my one\" ] # c\r\nRegion = eu-west-1 ; c\r\n"
      "secret=a#b;c\r\n\r\nempty = # c\r\n",
      AwsFileKind::kConfig);
  const AwsSection* section = config.find("my one");
  ASSERT_NE(section, nullptr);
  EXPECT_EQ(section->get("region"), "eu-west-1");
  EXPECT_EQ(section->get("secret"), "a#b;c");
  EXPECT_EQ(section->get("empty"), std::nullopt);
}

TEST(AwsProfileParser, NestedBlocksContinuationsAndRepeats) {
  const AwsProfiles config = parsed(
      "[default]\ns3 =\n  max_requests = 20\n  Endpoint_Url=http://a\nlong = one\n\ttwo\n"
      "twice = 1\ntwice = 2\n[default]\nmore = 3\n",
      AwsFileKind::kConfig);
  const AwsSection& section = *config.find("default");
  EXPECT_EQ(section.find("s3")->nested.at("max_requests"), "20");
  EXPECT_EQ(section.find("s3")->nested.at("endpoint_url"), "http://a");
  EXPECT_EQ(section.get("long"), "one\ntwo");
  EXPECT_EQ(section.get("twice"), "2");
  EXPECT_EQ(section.get("more"), "3");
  EXPECT_EQ(section.find("more")->place(), "f:10");
}

TEST(AwsProfileParser, ErrorsNameFileAndLineAndNoValue) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"a = SECRET\n", "f:1:"},
      {"[default\n", "f:1:"},
      {"[default]\nSECRET\n", "f:2:"},
      {"[default]\n= SECRET\n", "f:2:"},
      {"[default]\n  SECRET\n", "f:2:"},
      {"[default] SECRET\n", "f:1:"},
      {"[]\n", "f:1:"},
      {"[default]\ns3 =\n  SECRET\n", "f:3:"}};
  for (const auto& [text, place] : cases) {
    AwsProfiles profiles;
    const Status status = parse_aws_file(text, AwsFileKind::kCredentials, "f", profiles);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr(place));
    EXPECT_THAT(status.message(), Not(HasSubstr("SECRET")));
  }
}

TEST(AwsProfiles, CredentialsFileWinsAndKeysAreNotMixed) {
  const TestFolder home;
  home.write(".aws/config",
             "[default]\nregion=r\naws_access_key_id=old\naws_secret_access_key=o\n"
             "aws_session_token=stale\n");
  home.write(".aws/credentials", "[default]\naws_access_key_id=new\naws_secret_access_key=n\n");
  const auto profiles = load_aws_profiles(fake_environment({{"HOME", home.path()}}));
  ASSERT_TRUE(profiles) << profiles.error().to_string();
  const AwsSection& section = *profiles->find("default");
  EXPECT_EQ(section.get("aws_access_key_id"), "new");
  EXPECT_EQ(section.get("aws_session_token"), std::nullopt);
  EXPECT_EQ(section.get("region"), "r");
}

TEST(AwsProfiles, WarnsOnlyAboutSecretsThatOthersCanRead) {
  const TestFolder home;
  home.write(".aws/config", "[default]\nregion=r\n", 0644);
  const std::string keys =
      home.write(".aws/credentials", "[default]\naws_secret_access_key=TOPSECRET\n", 0640);
  const LogCapture log;
  ASSERT_TRUE(load_aws_profiles(fake_environment({{"HOME", home.path()}})));
  EXPECT_THAT(log.text(), HasSubstr(keys));
  EXPECT_THAT(log.text(), Not(HasSubstr("config")));
  EXPECT_THAT(log.text(), Not(HasSubstr("TOPSECRET")));
}

TEST(AwsProfiles, RefusesWhatIsNoSmallRegularFile) {
  const TestFolder home;
  const std::string large = home.write("large", std::string(1024 * 1024 + 1, '#'));
  const std::string fifo = home.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& file : {large, fifo, home.path()}) {
    const auto loaded = load_aws_profiles(fake_environment({{"AWS_CONFIG_FILE", file}}));
    ASSERT_FALSE(loaded) << file;
    EXPECT_EQ(loaded.error().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(loaded.error().message(), HasSubstr(file));
  }
}

TEST(AwsRegion, Precedence) {
  const TestFolder home;
  home.write(".aws/config", "[default]\nregion=d\n[profile x]\nregion=x\n");
  const auto region = [&](std::map<std::string, std::string, std::less<>> variables,
                          std::string_view profile = {}) {
    variables["HOME"] = home.path();
    return resolve_region(fake_environment(std::move(variables)), profile).value();
  };
  EXPECT_EQ(region({{"AWS_REGION", "a"}, {"AWS_DEFAULT_REGION", "b"}}), "a");
  EXPECT_EQ(region({{"AWS_REGION", ""}, {"AWS_DEFAULT_REGION", "b"}}), "b");
  EXPECT_EQ(region({}), "d");
  EXPECT_EQ(region({{"AWS_PROFILE", "x"}}), "x");
  EXPECT_EQ(region({{"AWS_PROFILE", "default"}}, "x"), "x");
  EXPECT_EQ(resolve_region(fake_environment({})).value(), "");
}

TEST(AwsRegion, EndpointPrecedence) {
  const TestFolder home;
  home.write(".aws/config",
             "[default]\nendpoint_url=p\nservices=s\n[services s]\ns3 =\n  endpoint_url = q\n");
  const auto url = [&](std::map<std::string, std::string, std::less<>> variables,
                       std::string_view service) {
    variables["HOME"] = home.path();
    return resolve_endpoint_url(fake_environment(std::move(variables)), service).value();
  };
  EXPECT_EQ(url({{"AWS_ENDPOINT_URL_S3", "a"}, {"AWS_ENDPOINT_URL", "b"}}, "s3"), "a");
  EXPECT_EQ(url({{"AWS_ENDPOINT_URL", "b"}}, "s3"), "b");
  EXPECT_EQ(url({}, "s3"), "q");
  EXPECT_EQ(url({}, "sts"), "p");
  EXPECT_EQ(url({{"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"}}, "s3"), std::nullopt);
}

}  // namespace
}  // namespace millrace::s3
