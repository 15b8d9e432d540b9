#include "objectstore/s3/credentials_chain.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/objectstore/s3/credentials_fakes.h"

namespace millrace::s3 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;
using Variables = std::map<std::string, std::string, std::less<>>;

std::string sts_answer(const std::string& action, const std::string& key) {
  return "<R><" + action + "Result><Credentials><AccessKeyId>" + key +
         "</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
         "<Expiration>2026-01-01T01:00:00Z</Expiration></Credentials></" +
         action + "Result></R>";
}

// Every network source works; which one was asked shows in the key.
Result<HttpResponse> cloud(const RequestContext&, const HttpRequest& request) {
  if (request.url.find("sts") != std::string::npos) {
    const bool web = request.body.text().find("WebIdentityToken") != std::string_view::npos;
    const std::string signer = header_of(request, "Signed-By");
    return web ? answer(200, sts_answer("AssumeRoleWithWebIdentity", "web-identity"))
               : answer(200, sts_answer("AssumeRole", "role-by-" + signer));
  }
  const std::string key =
      request.url.find("169.254.170.2/") != std::string::npos ? "container" : "imds";
  if (request.method == HttpMethod::kPut) return answer(200, "T");
  if (request.url.ends_with("security-credentials/")) return answer(200, "role");
  return answer(200, R"({"AccessKeyId":")" + key + R"(","SecretAccessKey":"s","Token":"t"})");
}

class CredentialChainTest : public ::testing::Test {
 protected:
  std::unique_ptr<CredentialChain> chain(Variables variables, HttpClient& client,
                                         std::string profile = "") {
    variables["HOME"] = home.path();
    return default_credential_chain(
        {.transport = {client, clock, system_random()},
         .environment = fake_environment(std::move(variables)),
         .given = given,
         .profile = std::move(profile),
         .region = "",
         .sign = [](const Credentials& by, const SigningScope& scope, HttpRequest& request) {
           EXPECT_EQ(scope.service, "sts");
           request.headers.push_back({"Signed-By", by.access_key});
           return Status();
         }});
  }
  // The key that the chain finds, or its error.
  std::string found(Variables variables, std::string profile = "") {
    auto result = chain(std::move(variables), http, std::move(profile))->fetch(background);
    return result ? result->access_key : result.error().message();
  }

  ManualClock clock;
  RequestContext background = RequestContext::background();
  TestFolder home;
  std::optional<Credentials> given;
  FakeHttpClient http{cloud};
};

TEST_F(CredentialChainTest, OrderIsThatOfAws) {
  Variables all = {{"AWS_ACCESS_KEY_ID", "environment"},
                   {"AWS_SECRET_ACCESS_KEY", "s"},
                   {"AWS_ROLE_ARN", "arn"},
                   {"AWS_WEB_IDENTITY_TOKEN_FILE", home.write("token", "t")},
                   {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c"}};
  home.write(".aws/credentials",
             "[default]\naws_access_key_id=profile\naws_secret_access_key=s\n"
             "[x]\naws_access_key_id=profile-x\naws_secret_access_key=s\n");
  given = Credentials{.access_key = "given",
                      .secret_key = "s",
                      .session_token = "",
                      .expires = {},
                      .source = "code"};
  EXPECT_EQ(found(all), "given");
  given.reset();
  EXPECT_EQ(found(all), "environment");
  EXPECT_EQ(found(all, "x"), "profile-x");  // Chosen in code: beats the environment.
  all.erase("AWS_ACCESS_KEY_ID");
  EXPECT_THAT(found(all), HasSubstr("AWS_ACCESS_KEY_ID is not"));  // Half a pair stops the chain.
  all.erase("AWS_SECRET_ACCESS_KEY");
  EXPECT_EQ(found(all), "web-identity");
  all.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  EXPECT_EQ(found(all), "profile");
  std::filesystem::remove(home.path(".aws/credentials"));
  EXPECT_EQ(found(all), "container");
  all.erase("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  EXPECT_EQ(found(all), "imds");
}

TEST_F(CredentialChainTest, NoneFoundNamesEverythingTriedAndWhatToDo) {
  FakeHttpClient nobody(nobody_there());
  const auto result = chain({}, nobody)->fetch(background);
  EXPECT_EQ(result.error().code(), StatusCode::kUnauthenticated);
  EXPECT_THAT(result.error().message(),
              AllOf(HasSubstr("environment (AWS_ACCESS_KEY_ID is not set)"),
                    HasSubstr("AWS_WEB_IDENTITY_TOKEN_FILE"), HasSubstr(".aws/credentials"),
                    HasSubstr("container endpoint"), HasSubstr("169.254.169.254"),
                    HasSubstr("aws configure")));
}

TEST_F(CredentialChainTest, ConfiguredButFailingStopsTheChain) {
  EXPECT_THAT(found({{"AWS_PROFILE", "missing"}}), HasSubstr("no profile 'missing'"));
  EXPECT_THAT(found({{"AWS_ROLE_ARN", "a"}, {"AWS_WEB_IDENTITY_TOKEN_FILE", "/no/such"}}),
              HasSubstr("/no/such"));
  home.write(".aws/config", "[default]\nregion = r\n");
  EXPECT_EQ(found({}), "imds");  // A profile without any credentials is no profile for us.
  home.write(".aws/config", "[default]\nsso_start_url = u\n");
  EXPECT_THAT(found({}), HasSubstr("aws configure export-credentials"));
  home.write(".aws/config", "[default]\naws_access_key_id = a\n");
  EXPECT_THAT(found({}), AllOf(HasSubstr("config:2"), HasSubstr("no aws_secret_access_key")));
}

TEST_F(CredentialChainTest, StrayWhiteSpaceIsNamedAndTheSecretIsNot) {
  EXPECT_THAT(found({{"AWS_ACCESS_KEY_ID", "a"}, {"AWS_SECRET_ACCESS_KEY", "HUSH\n"}}),
              AllOf(HasSubstr("secret key from environment"), Not(HasSubstr("HUSH"))));
}

TEST_F(CredentialChainTest, TheWinnerIsLoggedWithoutSecretsAndRemembered) {
  bool away = false;
  FakeHttpClient flaky([&](const RequestContext& context, const HttpRequest& request) {
    return away ? nobody_there()(context, request) : cloud(context, request);
  });
  const auto subject = chain({}, flaky);
  const LogCapture log;
  ASSERT_TRUE(subject->fetch(background));
  EXPECT_THAT(log.text(), HasSubstr("EC2 instance metadata"));
  EXPECT_EQ(subject->name(), "EC2 instance metadata");
  away = true;
  home.write(".aws/credentials", "[default]\naws_access_key_id=p\naws_secret_access_key=s\n");
  EXPECT_EQ(subject->fetch(background).error().code(), StatusCode::kUnavailable);
}

TEST_F(CredentialChainTest, RolesOfProfiles) {
  home.write(
      ".aws/config",
      "[profile base]\naws_access_key_id=base\naws_secret_access_key=s\n"
      "[profile one]\nrole_arn=r1\nsource_profile=base\n"
      "[profile two]\nrole_arn=r2\nsource_profile=one\nregion=eu-west-1\n"
      "[profile env]\nrole_arn=r\ncredential_source=Environment\n"
      "[profile ec2]\nrole_arn=r\ncredential_source=Ec2InstanceMetadata\n"
      "[profile self]\nrole_arn=r\nsource_profile=self\naws_access_key_id=own\n"
      "aws_secret_access_key=s\n"
      "[profile a]\nrole_arn=r\nsource_profile=b\n[profile b]\nrole_arn=r\nsource_profile=a\n"
      "[profile lost]\nrole_arn=r\nsource_profile=nowhere\n"
      "[profile bare]\nrole_arn=r\n[profile mfa]\nrole_arn=r\nsource_profile=base\n"
      "mfa_serial=m\n[profile web]\nrole_arn=r\nweb_identity_token_file=" +
          home.write("token", "t") + "\n");
  EXPECT_EQ(found({}, "one"), "role-by-base");
  EXPECT_EQ(found({}, "two"), "role-by-role-by-base");
  EXPECT_EQ(http.requests().back().url, "https://sts.eu-west-1.amazonaws.com/");
  EXPECT_EQ(found({{"AWS_ACCESS_KEY_ID", "e"}, {"AWS_SECRET_ACCESS_KEY", "s"}}, "env"),
            "role-by-e");
  EXPECT_EQ(found({}, "ec2"), "role-by-imds");
  EXPECT_EQ(found({}, "self"), "role-by-own");
  EXPECT_EQ(found({}, "web"), "web-identity");
  EXPECT_THAT(found({}, "env"), HasSubstr("AWS_ACCESS_KEY_ID is not set"));
  EXPECT_THAT(found({}, "a"), HasSubstr("circle"));
  EXPECT_THAT(found({}, "lost"), HasSubstr("'nowhere' does not exist"));
  EXPECT_THAT(found({}, "bare"), HasSubstr("exactly one of"));
  EXPECT_THAT(found({}, "mfa"), HasSubstr("mfa_serial"));
}

class CredentialProcessTest : public CredentialChainTest {
 protected:
  std::string process(const std::string& command) {
    home.write(".aws/config", "[default]\ncredential_process = " + command + "\n");
    return found({});
  }
};

TEST_F(CredentialProcessTest, ReadsVersionOne) {
  EXPECT_EQ(process(R"(echo '{"Version":1,"AccessKeyId":"p","SecretAccessKey":"s"}')"), "p");
}

TEST_F(CredentialProcessTest, FailuresShowNoOutput) {
  EXPECT_THAT(process("echo HUSH; exit 3"),
              AllOf(HasSubstr("exit status 3"), Not(HasSubstr("HUSH"))));
  EXPECT_THAT(process("echo HUSH"), AllOf(HasSubstr("not a JSON object"), Not(HasSubstr("HUSH"))));
  EXPECT_THAT(process("kill -9 $$"), HasSubstr("signal 9"));
  EXPECT_THAT(process(R"(echo '{"Version":2,"AccessKeyId":"p","SecretAccessKey":"s"}')"),
              HasSubstr("\"Version\": 1"));
  EXPECT_THAT(process("cat /dev/zero"), HasSubstr("far more than credentials"));
}

// Waits for a condition of the outside world, which tells nobody when it changes.
bool becomes_true(const std::function<bool()>& condition) {
  const TimePoint limit = system_clock().now() + 30s;
  while (!condition()) {
    if (system_clock().now() > limit) return false;
    system_clock().sleep_until(system_clock().now() + 5ms, nullptr);
  }
  return true;
}

pid_t pid_in(const std::string& file) {
  pid_t pid = 0;
  std::ifstream(file) >> pid;
  return pid;
}

// Dead, or dead and not yet reaped by init.
bool is_gone(pid_t pid) {
  std::string skip;
  std::string state;
  std::ifstream("/proc/" + std::to_string(pid) + "/stat") >> skip >> skip >> state;
  return state.empty() || state == "Z" || state == "X";
}

TEST_F(CredentialProcessTest, IsKilledWithItsChildrenWhenTheRequestEnds) {
  const std::string file = home.path("pid");
  home.write(".aws/config",
             "[default]\ncredential_process = sleep 600 & echo $! > " + file + "; sleep 600\n");
  const RequestContext request(TimePoint::max(), "test");
  Result<Credentials> result = failure(StatusCode::kInternal, "not asked yet");
  std::jthread asking([&] { result = chain({}, http)->fetch(request); });
  EXPECT_TRUE(becomes_true([&] { return pid_in(file) > 0; }));
  request.cancellation().request();
  asking.join();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), StatusCode::kCancelled);
  EXPECT_TRUE(becomes_true([&] { return is_gone(pid_in(file)); }));
}

}  // namespace
}  // namespace millrace::s3
