#include "objectstore/s3/s3_headers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/checksum.h"

namespace millrace::s3 {
namespace {

TEST(ContentRange, TakesWhatTheStandardDefinesAndNothingElse) {
  const auto good = parse_content_range("bytes 5-9/100");
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ(good->range, (ByteRange{5, 5}));
  EXPECT_EQ(good->total, 100U);
  for (const char* bad :
       {"", "bytes", "bytes 5-9", "bytes 9-5/100", "bytes 5-100/100", "bytes */100", "bytes 5-9/*",
        "bytes 5-9/100 ", " bytes 5-9/100", "bytes -5-9/100", "octets 5-9/100",
        "bytes 5-99999999999999999999999/100", "bytes 18446744073709551615-0/1"}) {
    EXPECT_FALSE(parse_content_range(bad).has_value()) << bad;
  }
}

class ParseGet : public ::testing::Test {
 protected:
  ParseGet() {
    request_.key = ObjectKey("k");
    response_.status = 206;
    response_.body = Slice::copy_of("56789");
  }

  void set_range(std::uint64_t offset, std::uint64_t length) {
    request_.range = ByteRange{offset, length};
  }
  StatusCode outcome() {
    const auto result = parse_get(request_, response_);
    return result ? StatusCode::kOk : result.error().code();
  }

  GetRequest request_;
  HttpResponse response_;
};

TEST_F(ParseGet, DeliversTheRangeAndTheWholesSizeAndIdentity) {
  set_range(5, 5);
  response_.headers.add("ETag", "\"e\"");
  response_.headers.add("Content-Range", "bytes 5-9/100");
  const auto result = parse_get(request_, response_);
  ASSERT_TRUE(result.has_value()) << result.error().to_string();
  EXPECT_EQ(result->data.text(), "56789");
  EXPECT_EQ(result->info.size, 100U);
  EXPECT_EQ(result->info.identity.value(), "\"e\"");
}

TEST_F(ParseGet, CutsTheRangeAtTheObjectsEnd) {
  set_range(5, 1000);
  response_.headers.add("ETag", "e");
  response_.headers.add("Content-Range", "bytes 5-9/10");
  EXPECT_EQ(outcome(), StatusCode::kOk);
}

TEST_F(ParseGet, RefusesAnotherRangeThanAskedFor) {
  response_.headers.add("ETag", "e");
  response_.headers.add("Content-Range", "bytes 5-9/100");
  set_range(4, 5);
  EXPECT_EQ(outcome(), StatusCode::kCorruption);
  set_range(5, 4);
  EXPECT_EQ(outcome(), StatusCode::kCorruption);
  set_range(5, 6);
  EXPECT_EQ(outcome(), StatusCode::kCorruption);
  set_range(200, 5);
  EXPECT_EQ(outcome(), StatusCode::kCorruption);
}

TEST_F(ParseGet, RefusesABodyOfAnotherLengthThanItsContentRange) {
  set_range(5, 5);
  response_.headers.add("ETag", "e");
  response_.headers.add("Content-Range", "bytes 5-9/100");
  response_.body = Slice::copy_of("5678");
  EXPECT_EQ(outcome(), StatusCode::kCorruption);
}

TEST_F(ParseGet, RefusesAMissingOrAnotherEtag) {
  set_range(5, 5);
  response_.headers.add("Content-Range", "bytes 5-9/100");
  EXPECT_EQ(outcome(), StatusCode::kInternal);
  response_.headers.add("ETag", "new");
  request_.identity = ObjectIdentity("old");
  EXPECT_EQ(outcome(), StatusCode::kPreconditionFailed);
}

TEST_F(ParseGet, RefusesAWholeObjectInsteadOfARangeUnlessItIsTheRange) {
  response_.status = 200;
  response_.headers.add("ETag", "e");
  set_range(5, 5);
  EXPECT_EQ(outcome(), StatusCode::kInternal);
  set_range(0, 4);
  EXPECT_EQ(outcome(), StatusCode::kInternal);
  set_range(0, 5);
  EXPECT_EQ(outcome(), StatusCode::kOk);
  set_range(0, 50);
  EXPECT_EQ(outcome(), StatusCode::kOk);
}

TEST_F(ParseGet, ChecksTheWholeAgainstWhicheverChecksumThereIs) {
  response_.status = 200;
  response_.headers.add("ETag", "e");
  const std::uint32_t crc = crc32c(response_.body.bytes());
  struct Case {
    const char* name;
    std::string good;
    std::string bad;
  };
  for (const Case& c : {Case{"x-amz-checksum-crc32c", encode_crc32c(crc), encode_crc32c(crc ^ 1)},
                        Case{"x-amz-meta-millrace-crc32c", fmt::format("{:08x}", crc), "00000000"},
                        Case{"x-amz-checksum-crc64nvme", "", "AAAAAAAAAAA="}}) {
    const HttpHeaders plain = response_.headers;
    if (!c.good.empty()) {
      response_.headers.add(c.name, c.good);
      EXPECT_EQ(outcome(), StatusCode::kOk) << c.name;
      response_.headers = plain;
    }
    response_.headers.add(c.name, c.bad);
    EXPECT_EQ(outcome(), StatusCode::kCorruption) << c.name;
    response_.headers = plain;
  }
}

TEST_F(ParseGet, DoesNotMistakeAChecksumOfPartsForOneOfBytes) {
  response_.status = 200;
  response_.headers.add("ETag", "e-2");
  response_.headers.add("x-amz-checksum-crc32c", "AAAAAA==-2");
  response_.headers.add("x-amz-checksum-type", "COMPOSITE");
  EXPECT_EQ(outcome(), StatusCode::kOk);
}

TEST(ObjectHeaders, ShowTheUsersMetadataAndNotOurs) {
  HttpHeaders headers;
  headers.add("ETag", "e");
  headers.add("Content-Length", "7");
  headers.add("X-Amz-Meta-Colour", "blue");
  headers.add("x-amz-meta-millrace-crc32c", "00000000");
  headers.add("x-amz-meta-millrace-upload-token", "t");
  const auto info = parse_object_headers(ObjectKey("k"), headers);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->size, 7U);
  EXPECT_EQ(info->metadata, (ObjectMetadata{{"colour", "blue"}}));
  EXPECT_EQ(own_metadata(headers, kUploadTokenMetadata), "t");
}

TEST(ObjectHeaders, RefuseALengthThatIsNone) {
  for (const char* length : {"", "x", "-1", "7 ", "99999999999999999999999"}) {
    HttpHeaders headers;
    headers.add("ETag", "e");
    headers.add("Content-Length", length);
    EXPECT_FALSE(parse_object_headers(ObjectKey("k"), headers).has_value()) << length;
  }
}

}  // namespace
}  // namespace millrace::s3
