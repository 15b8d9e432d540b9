// What the strict S3 server holds: buckets, objects, uploads, quirks.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "tests/servers/strict_s3_answer.h"
#include "tests/servers/strict_s3_server.h"

namespace millrace::testing {

constexpr size_t kKeysMax = 1000;  // In one page of a list, and in one batch delete.
constexpr size_t kKeyBytesMax = 1024;

struct S3Checksum {
  std::string algorithm;  // CRC32, CRC32C, CRC64NVME, SHA1, SHA256.
  std::string type;       // FULL_OBJECT or COMPOSITE.
  std::string value;      // Base64; for COMPOSITE with "-parts" behind it.
};

// What travels with an object beside its bytes.
struct S3Properties {
  std::string content_type = "binary/octet-stream";
  std::map<std::string, std::string> metadata;  // Names in lower case, without x-amz-meta-.
};

// Immutable once stored: readers keep a pointer while a writer replaces the entry.
struct S3Object {
  std::string body;
  std::string etag;  // With its quotes.
  S3Properties properties;
  std::optional<S3Checksum> checksum;
  S3Time modified;
};
using S3ObjectPtr = std::shared_ptr<const S3Object>;

struct S3Part {
  std::shared_ptr<const std::string> body;
  std::string md5;       // Raw.
  std::string checksum;  // Raw, by the upload's algorithm; "" when it has none.
  S3Time modified;
};

struct S3Upload {
  std::string key;
  S3Properties properties;
  std::string checksum_algorithm;  // "": none was asked for.
  std::string checksum_type;
  std::map<int, S3Part> parts;
  S3Time initiated;
};

struct S3Bucket {
  std::map<std::string, S3ObjectPtr> objects;  // In the order of their bytes, as S3 lists.
  std::map<std::string, S3Upload> uploads;     // By upload id.

  // The object, or null.
  S3ObjectPtr find(const std::string& key) const;
  // The upload of that id and key, or null.
  S3Upload* find_upload(const std::string& id, const std::string& key);
};

// One lock for everything: an operation checks its conditions and acts in one critical section,
// which is what makes the conditions atomic. Bodies are hashed and copied outside of it.
struct S3World {
  explicit S3World(StrictS3Options server_options) : options(std::move(server_options)) {}

  const StrictS3Options options;

  mutable std::mutex mutex;
  // Guarded by mutex.
  std::map<std::string, S3Bucket> buckets;
  StrictS3Quirks quirks;
  uint64_t next_id = 1;

  S3Time now() const;  // The server's clock; the caller holds mutex.
};

// One authenticated request on its way through an operation. Its bucket exists.
struct S3Call {
  const HttpRequest& http;
  std::string bucket;
  std::string key;
  S3Time now;
  bool checksums;  // False under the quirk no_checksum_support.

  std::string header(std::string_view name) const { return http.headers.get(name); }
  bool has_header(std::string_view name) const { return http.headers.has(name); }
  std::string query(std::string_view name) const { return http.query_value(name).value_or(""); }
};

// Uses up one of a counting quirk; false when none is left.
bool take_one(int& times);

// The digests of a body, once they agree with what the request's headers claim.
struct S3Payload {
  std::string md5;                     // Raw.
  std::optional<S3Checksum> checksum;  // The one that the client sent.
};
S3Result<S3Payload> verify_payload(const S3Call& call);

// "crc32c" for CRC32C, as in header names.
std::string checksum_header(std::string_view algorithm);
S3Checksum full_checksum(std::string_view algorithm, std::string_view body);

// Content-Type and x-amz-meta-*; at most 2 KiB of metadata.
S3Result<S3Properties> read_properties(const S3Call& call);

// Whether the ETag is named by an If-Match or If-None-Match value: "*" or a list, quotes optional.
bool etag_listed(const std::string& header, const std::string& etag);

// If-Match and If-None-Match of a write, against what is stored now (null: nothing).
struct S3ConditionRules {
  bool ignore_none_match = false;
  bool ignore_match = false;
  bool refuse_quoted_match = false;
};
S3Result<void> check_write_conditions(const S3Call& call, S3World& world, const S3Object* existing,
                                      S3ConditionRules rules);

}  // namespace millrace::testing
