#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "objectstore/s3/container_credentials.h"
#include "objectstore/s3/credentials_sts.h"
#include "objectstore/s3/imds_credentials.h"
#include "objectstore/s3/web_identity_credentials.h"
#include "platform/curl_http_client.h"
#include "tests/objectstore/s3/credentials_fakes.h"
#include "tests/servers/http_server.h"

namespace millrace::s3 {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

constexpr std::string_view kStsAnswer =
    "<AssumeRoleWithWebIdentityResponse xmlns='https://sts.amazonaws.com/doc/2011-06-15/'>"
    "<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA1</AccessKeyId>"
    "<SecretAccessKey>SECRET</SecretAccessKey><SessionToken>SESSION</SessionToken>"
    "<Expiration>2026-01-01T01:00:00Z</Expiration></Credentials>"
    "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";
constexpr std::string_view kJson =
    R"({"Code":"Success","AccessKeyId":"ASIA1","SecretAccessKey":"SECRET","Token":"SESSION",)"
    R"("Expiration":"2026-01-01T01:00:00Z"})";

class NetworkCredentialsTest : public ::testing::Test {
 protected:
  CredentialTransport transport(HttpClient& http) { return {http, clock, system_random()}; }
  Result<Credentials> web_identity(HttpClient& http) {
    return WebIdentityCredentials(transport(http),
                                  fake_environment({{"AWS_ROLE_ARN", "arn:aws:iam::1:role/r"},
                                                    {"AWS_WEB_IDENTITY_TOKEN_FILE", token_file}}),
                                  "eu-west-1")
        .fetch(background);
  }
  Result<Credentials> container(HttpClient& http, const std::string& url = "http://127.0.0.1/c") {
    return ContainerCredentials(
               transport(http),
               fake_environment({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url},
                                 {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token_file}}))
        .fetch(background);
  }
  Result<Credentials> imds(HttpClient& http) {
    return ImdsCredentials(transport(http), fake_environment({})).fetch(background);
  }

  ManualClock clock;
  RequestContext background = RequestContext::background();
  TestFolder folder;
  std::string token_file = folder.write("token", "TOKEN1\n");
};

TEST_F(NetworkCredentialsTest, WebIdentityReadsTheTokenEveryTime) {
  FakeHttpClient http(always(200, std::string(kStsAnswer)));
  const auto first = web_identity(http);
  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ(first->access_key, "ASIA1");
  EXPECT_EQ(first->session_token, "SESSION");
  EXPECT_EQ(*first->expires, clock.wall_now() + 1h);
  EXPECT_THAT(first->describe(), Not(HasSubstr("SECRET")));
  folder.write("token", "TOKEN2");
  ASSERT_TRUE(web_identity(http));
  const auto requests = http.requests();
  EXPECT_EQ(requests[0].url, "https://sts.eu-west-1.amazonaws.com/");
  EXPECT_THAT(requests[0].body.text(), HasSubstr("WebIdentityToken=TOKEN1"));
  EXPECT_THAT(requests[0].body.text(), HasSubstr("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr"));
  EXPECT_THAT(requests[1].body.text(), HasSubstr("WebIdentityToken=TOKEN2"));
}

TEST_F(NetworkCredentialsTest, StsRefusalsCarryItsWordsAndAreNotRetried) {
  FakeHttpClient http(always(400,
                             "<ErrorResponse><Error><Code>InvalidIdentityToken</Code>"
                             "<Message>bad token</Message></Error></ErrorResponse>"));
  const auto result = web_identity(http);
  EXPECT_EQ(result.error().code(), StatusCode::kUnauthenticated);
  EXPECT_THAT(result.error().message(), HasSubstr("InvalidIdentityToken: bad token"));
  EXPECT_EQ(http.requests().size(), 1U);
}

TEST_F(NetworkCredentialsTest, GarbageIsAnErrorThatShowsNothingOfIt) {
  for (const std::string& body :
       {std::string(""), std::string("SECRET"), std::string("<a><b>SECRET"), std::string("[1]"),
        std::string("{\"AccessKeyId\":7}"), std::string("{\"AccessKeyId\":\"a\"}"),
        std::string(kJson.substr(0, 60)), std::string(kStsAnswer.substr(0, 200)),
        std::string(R"({"AccessKeyId":"a","SecretAccessKey":"SECRET","Expiration":"soon"})")}) {
    FakeHttpClient http(always(200, body));
    for (const auto& result : {web_identity(http), container(http)}) {
      ASSERT_FALSE(result) << body;
      EXPECT_EQ(result.error().code(), StatusCode::kInternal);
      EXPECT_THAT(result.error().message(), Not(HasSubstr("SECRET")));
    }
  }
}

TEST_F(NetworkCredentialsTest, ServerErrorsAreRetriedThreeTimes) {
  FakeHttpClient http(always(503, ""));
  EXPECT_EQ(web_identity(http).error().code(), StatusCode::kUnavailable);
  EXPECT_EQ(http.requests().size(), 3U);
  EXPECT_TRUE(http.requests()[2].fresh_connection);
}

TEST_F(NetworkCredentialsTest, StsEndpoints) {
  const Environment none = fake_environment({});
  EXPECT_EQ(sts_endpoint(none, "cn-north-1")->url, "https://sts.cn-north-1.amazonaws.com.cn");
  EXPECT_EQ(sts_endpoint(none, "")->url, "https://sts.amazonaws.com");
  EXPECT_FALSE(sts_endpoint(none, "evil.com/"));
  const Environment custom = fake_environment({{"AWS_ENDPOINT_URL_STS", "http://h:1/"}});
  EXPECT_EQ(sts_endpoint(custom, "r")->url, "http://h:1");
}

TEST_F(NetworkCredentialsTest, ContainerSendsTheTokenAndReportsARefusal) {
  FakeHttpClient http([](const RequestContext&, const HttpRequest& request) {
    const bool known = header_of(request, "Authorization") == "TOKEN2";
    return Result<HttpResponse>(answer(known ? 200 : 401, known ? std::string(kJson) : "no"));
  });
  const auto refused = container(http);
  EXPECT_EQ(refused.error().code(), StatusCode::kUnauthenticated);
  EXPECT_THAT(refused.error().message(), Not(HasSubstr("TOKEN1")));
  folder.write("token", "TOKEN2");
  EXPECT_EQ(container(http)->access_key, "ASIA1");
}

TEST_F(NetworkCredentialsTest, ContainerUrlRule) {
  for (const char* good :
       {"http://localhost/a", "http://127.9.9.9:80/a", "http://[::1]:80/", "http://169.254.170.2/a",
        "http://169.254.170.23/v1/credentials", "http://[fd00:ec2::23]/v1", "https://any.host/a"}) {
    EXPECT_TRUE(check_container_url(good).ok()) << good;
  }
  for (const char* bad :
       {"http://example.com/", "http://127.0.0.1@evil.com/", "http://169.254.170.2.evil.com/",
        "http://127.0.0.1\\@evil.com/", "ftp://127.0.0.1/", "http://", "https://", "127.0.0.1/a",
        "http://127.0.0.1/a\r\nX: y", "http://0x7f000001/", "http://169.254.170.3/"}) {
    EXPECT_FALSE(check_container_url(bad).ok()) << bad;
  }
}

// IMDSv2 as it behaves: no token, no answer.
FakeHttpClient::Handler imds_server(std::string_view roles, int role_status = 200) {
  return [=](const RequestContext&, const HttpRequest& request) -> Result<HttpResponse> {
    const std::string base = "http://169.254.169.254/latest/";
    if (request.url == base + "api/token") {
      const bool asked = request.method == HttpMethod::kPut &&
                         !header_of(request, "X-aws-ec2-metadata-token-ttl-seconds").empty();
      return answer(asked ? 200 : 400, asked ? "IMDSTOKEN" : "");
    }
    if (header_of(request, "X-aws-ec2-metadata-token") != "IMDSTOKEN") return answer(401, "");
    const std::string path = base + "meta-data/iam/security-credentials/";
    if (request.url == path) return answer(role_status, std::string(roles));
    if (request.url == path + "my-role") return answer(200, std::string(kJson));
    return answer(404, "");
  };
}

TEST_F(NetworkCredentialsTest, ImdsAsksForTokenThenRoleThenCredentials) {
  FakeHttpClient http(imds_server("my-role\n"));
  const auto result = imds(http);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->secret_key, "SECRET");
  EXPECT_EQ(result->source, "EC2 instance role my-role");
  EXPECT_EQ(http.requests().size(), 3U);
}

TEST_F(NetworkCredentialsTest, ImdsWithoutRoleOrServiceIsNotConfigured) {
  FakeHttpClient no_role(imds_server("", 404));
  EXPECT_EQ(imds(no_role).error().code(), StatusCode::kNotFound);
  FakeHttpClient nobody(nobody_there());
  EXPECT_EQ(imds(nobody).error().code(), StatusCode::kNotFound);
  FakeHttpClient evil(imds_server("../../x?y"));
  EXPECT_EQ(imds(evil).error().code(), StatusCode::kInternal);
  FakeHttpClient untouched(nobody_there());
  ImdsCredentials disabled(transport(untouched),
                           fake_environment({{"AWS_EC2_METADATA_DISABLED", "TRUE"}}));
  EXPECT_EQ(disabled.fetch(background).error().code(), StatusCode::kNotFound);
  EXPECT_EQ(untouched.requests().size(), 0U);
}

TEST_F(NetworkCredentialsTest, ImdsThatHangsCostsTwoTriesOfOneSecond) {
  FakeHttpClient http(hanging(clock));
  const TimePoint start = clock.now();
  EXPECT_EQ(imds(http).error().code(), StatusCode::kNotFound);
  EXPECT_EQ(http.requests().size(), 2U);
  EXPECT_LE(clock.now() - start, 2200ms);
}

TEST_F(NetworkCredentialsTest, TheCallersOwnDeadlineIsReportedAsThat) {
  FakeHttpClient http(hanging(clock));
  ImdsCredentials provider(transport(http), fake_environment({}));
  const auto result = provider.fetch(RequestContext(clock.now() + 500ms, "test"));
  EXPECT_EQ(result.error().code(), StatusCode::kDeadlineExceeded);
}

// The same over real sockets: what is sent is what the services take, and a hang ends.
TEST(NetworkCredentialsOverSockets, ImdsAndAHangingContainerEndpoint) {
  millrace::testing::HttpServer server([](const millrace::testing::HttpRequest& request) {
    millrace::testing::HttpResponse response;
    if (request.path == "/hang") response.delay_before = 60s;
    if (request.path == "/latest/api/token") {
      response.body = request.method == "PUT" ? "IMDSTOKEN" : "";
    } else if (request.headers.get("x-aws-ec2-metadata-token") != "IMDSTOKEN") {
      response.status = 401;
    } else {
      response.body = request.path.ends_with("/") ? "my-role" : std::string(kJson);
    }
    return response;
  });
  CurlHttpClient http(CurlHttpClientOptions{});
  const CredentialTransport transport{http, system_clock(), system_random()};
  ImdsCredentials imds(transport,
                       fake_environment({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url()}}));
  const auto result = imds.fetch(RequestContext::background());
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->session_token, "SESSION");

  ContainerCredentials slow(
      transport,
      fake_environment({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url() + "/hang"}}));
  const auto late = slow.fetch(RequestContext(system_clock().now() + 300ms, "test"));
  EXPECT_EQ(late.error().code(), StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace millrace::s3
