#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "objectstore/object_store.h"

namespace millrace::s3 {

// Reading and writing S3's XML. Everything read comes from outside: a document that is not what was
// asked for is kCorruption (another answer may be whole), never a guess. pugixml expands no
// entities of the document's own, so there is nothing to blow up.

// <Error><Code>..</Code><Message>..</Message></Error>.
struct ErrorDocument {
  std::string code;
  std::string message;
  std::string region;  // Where the bucket really is, when the error is about that.
};

// Empty code when the body is no error document.
ErrorDocument parse_error(std::string_view xml);

// An answer to ListObjectsV2 that was asked for with encoding-type=url.
Result<ListPage> parse_list(std::string_view xml);

// The upload id in an answer to CreateMultipartUpload.
Result<std::string> parse_create_upload(std::string_view xml);

// The ETag in an answer to CompleteMultipartUpload, CopyObject or UploadPartCopy. Those may answer
// 200 and then fail: parse_error must have found nothing.
Result<std::string> parse_etag(std::string_view xml);

struct RemoveFailure {
  std::string key;
  std::string code;
  std::string message;
};
// What DeleteObjects in quiet mode could not remove.
Result<std::vector<RemoveFailure>> parse_remove(std::string_view xml);
std::string write_remove(std::span<const ObjectKey> keys);

struct UploadedPart {
  int number = 0;
  std::string etag;
  std::string crc32c;  // base64; empty when checksums are off.
};
std::string write_complete(std::span<const UploadedPart> parts);

}  // namespace millrace::s3
