// Known answers from outside: the check values of the CRC catalogue and the example of AWS's
// documentation of SigV4 for S3.
#include "tests/servers/strict_s3_signature.h"

#include <gtest/gtest.h>

#include "tests/servers/strict_s3_digest.h"

namespace millrace::testing {
namespace {

TEST(StrictS3DigestTest, ChecksumsHaveTheirCatalogueValues) {
  const std::string text = "123456789";
  EXPECT_EQ(to_hex(s3_checksum("CRC32", text).value()), "cbf43926");
  EXPECT_EQ(to_hex(s3_checksum("CRC32C", text).value()), "e3069283");
  EXPECT_EQ(to_hex(s3_checksum("CRC64NVME", text).value()), "ae8b14860a799888");
  EXPECT_EQ(to_hex(s3_checksum("CRC32C", std::string(32, '\0')).value()), "8a9136aa");
  EXPECT_FALSE(s3_checksum("CRC16", text).has_value());
}

TEST(StrictS3DigestTest, Base64RefusesWhatIsNotCanonical) {
  EXPECT_EQ(to_base64("any carnal"), "YW55IGNhcm5hbA==");
  EXPECT_EQ(from_base64("YW55IGNhcm5hbA=="), "any carnal");
  EXPECT_FALSE(from_base64("YW55IGNhcm5hbA").has_value());
  EXPECT_FALSE(from_base64("YW55IGNhcm5hbB==").has_value());
  EXPECT_FALSE(from_base64("YW55 GNhcm5hbA==").has_value());
}

// "Example: GET Object" of the AWS documentation, 24 May 2013.
class DocumentedRequestTest : public ::testing::Test {
 protected:
  DocumentedRequestTest() {
    request_.method = "GET";
    request_.path = "/test.txt";
    request_.headers = {
        {"Host", "examplebucket.s3.amazonaws.com"},
        {"Range", "bytes=0-9"},
        {"x-amz-content-sha256",
         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"x-amz-date", "20130524T000000Z"},
        {"Authorization",
         "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
         "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
         "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"}};
    policy_.credentials = {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
    policy_.region = "us-east-1";
    policy_.now = std::chrono::system_clock::from_time_t(1369353600);
  }

  std::string code() const {
    const auto result = verify_signature(request_, policy_);
    return result ? "ok" : result.error().code;
  }

  HttpRequest request_;
  S3SigningPolicy policy_;
};

TEST_F(DocumentedRequestTest, IsAccepted) { EXPECT_EQ(code(), "ok"); }

TEST_F(DocumentedRequestTest, AnyChangeIsRefused) {
  request_.headers.set("Range", "bytes=0-10");
  EXPECT_EQ(code(), "SignatureDoesNotMatch");
  request_.headers.set("Range", "bytes=0-9");
  request_.path = "/test.txt/";
  EXPECT_EQ(code(), "SignatureDoesNotMatch");
  request_.path = "/test.txt";
  request_.query = {{"a", ""}};
  EXPECT_EQ(code(), "SignatureDoesNotMatch");
  request_.query.clear();
  request_.body = "x";
  EXPECT_EQ(code(), "XAmzContentSHA256Mismatch");
}

TEST_F(DocumentedRequestTest, UnsignedAmzHeadersAreRefused) {
  request_.headers.add("x-amz-meta-a", "b");
  EXPECT_EQ(code(), "AccessDenied");
}

TEST_F(DocumentedRequestTest, TimeAndIdentityAreChecked) {
  policy_.now += std::chrono::minutes(16);
  EXPECT_EQ(code(), "RequestTimeTooSkewed");
  policy_.now -= std::chrono::minutes(32);
  EXPECT_EQ(code(), "RequestTimeTooSkewed");
  policy_.now += std::chrono::minutes(2);
  EXPECT_EQ(code(), "ok");
  policy_.credentials_expire_at = policy_.now;
  EXPECT_EQ(code(), "ExpiredToken");
  policy_.credentials.session_token = "token";
  EXPECT_EQ(code(), "InvalidToken");
  policy_.credentials.access_key = "other";
  EXPECT_EQ(code(), "InvalidAccessKeyId");
}

TEST_F(DocumentedRequestTest, TheRegionIsNamedWhenItIsWrong) {
  policy_.region = "eu-west-1";
  const auto result = verify_signature(request_, policy_);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, "AuthorizationHeaderMalformed");
  EXPECT_EQ(result.error().elements.at(0).second, "eu-west-1");
}

}  // namespace
}  // namespace millrace::testing
