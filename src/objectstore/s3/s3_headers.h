#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "objectstore/object_store.h"
#include "platform/http_client.h"

namespace millrace::s3 {

// The names under which we keep our own facts in an object's user metadata. They are not shown as
// the user's.
inline constexpr std::string_view kChecksumMetadata = "millrace-crc32c";
inline constexpr std::string_view kUploadTokenMetadata = "millrace-upload-token";

// "bytes 0-99/1000".
struct ContentRange {
  ByteRange range;
  std::uint64_t total = 0;
};
std::optional<ContentRange> parse_content_range(std::string_view text);

// Size, identity, time and metadata of an object from the headers of a HEAD answer. kInternal when
// the ETag or the length is missing or malformed.
Result<ObjectInfo> parse_object_headers(const ObjectKey& key, const HttpHeaders& headers);
// The value that we keep under `name`, or empty.
std::string_view own_metadata(const HttpHeaders& headers, std::string_view name);

// The header "x-amz-meta-..." for each entry.
void add_metadata_headers(const ObjectMetadata& metadata, std::vector<HttpHeader>& headers);
void add_own_metadata(std::string_view name, std::string value, std::vector<HttpHeader>& headers);
void add_condition_headers(const WriteCondition& condition, std::vector<HttpHeader>& headers);

// What x-amz-checksum-crc32c carries.
std::string encode_crc32c(std::uint32_t crc);

// Turns the answer to a GET into the result, or refuses it: another range than asked for, another
// object than asked for, bytes missing or too many, a checksum of the whole that does not match.
// Damage of one answer is kCorruption, which is worth another try; what the store always does is
// kInternal.
Result<GetResult> parse_get(const GetRequest& request, HttpResponse response);

}  // namespace millrace::s3
