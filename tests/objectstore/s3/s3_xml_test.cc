#include "objectstore/s3/s3_xml.h"

#include <gtest/gtest.h>

#include "base/time_format.h"

namespace millrace::s3 {
namespace {

std::string list_of(std::string_view inside, std::string_view truncated = "false") {
  return "<?xml version=\"1.0\"?><ListBucketResult "
         "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><IsTruncated>" +
         std::string(truncated) + "</IsTruncated>" + std::string(inside) + "</ListBucketResult>";
}

std::string object(std::string_view key, std::string_view size = "1", std::string_view etag = "e") {
  return "<Contents><Key>" + std::string(key) + "</Key><Size>" + std::string(size) +
         "</Size><ETag>" + std::string(etag) +
         "</ETag><LastModified>2026-01-02T03:04:05.000Z</LastModified></Contents>";
}

TEST(S3List, ReadsObjectsPrefixesAndContinuation) {
  const auto page = parse_list(list_of(object("a%20b%2Bc", "12", "&quot;x&quot;") + object("b+c") +
                                           "<CommonPrefixes><Prefix>d%2F</Prefix></CommonPrefixes>"
                                           "<NextContinuationToken>t/+=</NextContinuationToken>",
                                       "true"));
  ASSERT_TRUE(page.has_value()) << page.error().to_string();
  ASSERT_EQ(page->objects.size(), 2U);
  EXPECT_EQ(page->objects[0].key.value(), "a b+c");
  EXPECT_EQ(page->objects[0].size, 12U);
  EXPECT_EQ(page->objects[0].identity.value(), "\"x\"");
  EXPECT_EQ(page->objects[0].modified, *parse_iso8601("2026-01-02T03:04:05Z"));
  EXPECT_EQ(page->objects[1].key.value(), "b c");
  EXPECT_EQ(page->prefixes, std::vector<std::string>{"d/"});
  EXPECT_EQ(page->continuation, "t/+=");
}

TEST(S3List, RefusesWhatItCannotTrust) {
  for (const std::string& bad : {
           std::string(),
           std::string("not xml"),
           std::string("<Error><Code>X</Code></Error>"),
           list_of(object("a")).substr(0, 150),
           list_of(object("a"), ""),
           list_of(object("a"), "true"),
           list_of(object("")),
           list_of(object("a", "many")),
           list_of(object("a", "-1")),
           list_of(object("a", "1", "")),
           list_of(object("%zz")),
           list_of(object("b") + object("a")),
           list_of(object("a") + object("a")),
       }) {
    const auto page = parse_list(bad);
    ASSERT_FALSE(page.has_value()) << bad;
  }
}

TEST(S3List, ExpandsNoEntities) {
  const auto page =
      parse_list("<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]>" +
                 list_of(object("&b;")));
  if (page) {
    EXPECT_EQ(page->objects[0].key.value(), "&b;");
  }
}

TEST(S3Errors, AreReadFromAnyBodyWithoutFailing) {
  EXPECT_EQ(parse_error("<Error><Code>NoSuchKey</Code><Message>m</Message></Error>").code,
            "NoSuchKey");
  // As AWS keeps a long completion alive: blanks before the document.
  EXPECT_EQ(parse_error("   \n  <Error><Code>InternalError</Code></Error>").code, "InternalError");
  for (const char* none : {"", "<html>", "<Result/>", "\xff\xfe", "<Error>"}) {
    EXPECT_EQ(parse_error(none).code, "") << none;
  }
}

TEST(S3Writes, NeedTheirAnswers) {
  EXPECT_EQ(parse_create_upload("<InitiateMultipartUploadResult><UploadId>u</UploadId>"
                                "</InitiateMultipartUploadResult>"),
            "u");
  EXPECT_FALSE(parse_create_upload("<InitiateMultipartUploadResult/>").has_value());
  EXPECT_EQ(parse_etag("<CopyObjectResult><ETag>\"e\"</ETag></CopyObjectResult>"), "\"e\"");
  EXPECT_FALSE(parse_etag("<CopyObjectResult/>").has_value());
}

TEST(S3Writes, EscapeWhatXmlWouldTakeForItsOwn) {
  const ObjectKey odd("a&<b>\"'\r\n\t");
  const std::string xml = write_remove(std::span(&odd, 1));
  EXPECT_NE(xml.find("a&amp;&lt;b&gt;&quot;&apos;&#13;&#10;&#9;"), std::string::npos);
  const UploadedPart part{3, "\"e\"", "crc="};
  EXPECT_NE(write_complete(std::span(&part, 1))
                .find("<PartNumber>3</PartNumber><ETag>&quot;e&quot;</ETag>"
                      "<ChecksumCRC32C>crc=</ChecksumCRC32C>"),
            std::string::npos);
}

TEST(S3Removes, ReportEachKeyThatStayed) {
  const auto failures = parse_remove(
      "<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code><Message>m</Message></Error>"
      "</DeleteResult>");
  ASSERT_TRUE(failures.has_value());
  ASSERT_EQ(failures->size(), 1U);
  EXPECT_EQ((*failures)[0].code, "AccessDenied");
  EXPECT_FALSE(parse_remove("<Other/>").has_value());
}

}  // namespace
}  // namespace millrace::s3
