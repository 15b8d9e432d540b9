#include "objectstore/s3/sigv4.h"

#include <gtest/gtest.h>

#include "base/time_format.h"

namespace millrace::s3 {
namespace {

constexpr std::string_view kEmpty =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

Credentials example_credentials() {
  Credentials credentials;
  credentials.access_key = "AKIAIOSFODNN7EXAMPLE";
  credentials.secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  return credentials;
}

std::string header(const std::vector<HttpHeader>& headers, std::string_view name) {
  for (const HttpHeader& h : headers) {
    if (h.name == name) return h.value;
  }
  return "";
}

std::string authorization(const SigningRequest& request, std::vector<HttpHeader> headers = {}) {
  SigV4Signer signer("s3");
  signer.sign(example_credentials(), "us-east-1", *parse_iso8601("2013-05-24T00:00:00Z"), request,
              headers);
  return header(headers, "authorization");
}

// The two examples of Amazon's documentation of SigV4 for S3 that sign what we sign.
TEST(SigV4, MatchesAmazonsExampleOfABucketRequest) {
  EXPECT_EQ(authorization(
                {HttpMethod::kGet, "examplebucket.s3.amazonaws.com", "/", "lifecycle=", kEmpty}),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
            "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(SigV4, MatchesAmazonsExampleOfAListing) {
  EXPECT_EQ(authorization({HttpMethod::kGet, "examplebucket.s3.amazonaws.com", "/",
                           "max-keys=2&prefix=J", kEmpty}),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
            "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(SigV4, SignsAmzHeadersAndTheSessionToken) {
  SigV4Signer signer("s3");
  Credentials credentials = example_credentials();
  credentials.session_token = "token";
  std::vector<HttpHeader> headers = {
      {"X-Amz-Meta-B", "2"}, {"range", "bytes=0-1"}, {"content-md5", "abc="}};
  signer.sign(credentials, "eu-west-1", *parse_iso8601("2026-01-02T03:04:05Z"),
              {HttpMethod::kPut, "h", "/b/k", "", kUnsignedPayload}, headers);
  EXPECT_EQ(header(headers, "x-amz-date"), "20260102T030405Z");
  EXPECT_EQ(header(headers, "x-amz-content-sha256"), "UNSIGNED-PAYLOAD");
  EXPECT_EQ(header(headers, "x-amz-security-token"), "token");
  EXPECT_NE(header(headers, "authorization")
                .find("SignedHeaders=content-md5;host;x-amz-content-sha256;x-amz-date;x-amz-meta-b;"
                      "x-amz-security-token,"),
            std::string::npos);
}

TEST(SigV4, TheDerivedKeyFollowsDayRegionAndSecret) {
  SigV4Signer reused("s3");
  const auto sign = [](SigV4Signer& signer, Credentials credentials, std::string_view region,
                       std::string_view time) {
    std::vector<HttpHeader> headers;
    signer.sign(credentials, region, *parse_iso8601(time), {HttpMethod::kGet, "h", "/", "", kEmpty},
                headers);
    return header(headers, "authorization");
  };
  Credentials other = example_credentials();
  other.secret_key = "another";
  // One signer through all changes, against a new one each time: the kept key never leaks through.
  for (const auto& credentials : {example_credentials(), other}) {
    for (const char* region : {"us-east-1", "eu-west-1"}) {
      for (const char* time : {"2026-01-02T23:59:59Z", "2026-01-03T00:00:00Z"}) {
        SigV4Signer fresh("s3");
        EXPECT_EQ(sign(reused, credentials, region, time), sign(fresh, credentials, region, time));
      }
    }
  }
}

}  // namespace
}  // namespace millrace::s3
