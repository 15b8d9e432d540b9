// CopyObject and UploadPartCopy.
#include <charconv>

#include "tests/servers/strict_s3_digest.h"
#include "tests/servers/strict_s3_operations.h"

namespace millrace::testing {
namespace {

struct CopySource {
  std::string bucket;
  std::string key;
};

S3Result<CopySource> parse_source(const S3Call& call) {
  const std::string raw = call.header("x-amz-copy-source");
  if (raw.find('?') != std::string::npos) {
    return s3_error(501, "NotImplemented", "Copy of a version is not served.");
  }
  // Nothing but escapes and plain characters: an unescaped '+' or space means that the client
  // forgot to encode, which AWS would read as another key.
  if (raw != uri_encode(percent_decode(raw), true)) {
    return s3_error(400, "InvalidArgument", "Copy Source must be URL-encoded: " + raw);
  }
  std::string path = percent_decode(raw);
  if (path.starts_with('/')) path.erase(0, 1);
  const size_t slash = path.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == path.size()) {
    return s3_error(400, "InvalidArgument",
                    "Copy Source must mention the source bucket and key: sourcebucket/sourcekey");
  }
  return CopySource{path.substr(0, slash), path.substr(slash + 1)};
}

// Finds the source and checks the conditions on it. The caller holds the lock.
S3Result<S3ObjectPtr> open_source(const S3World& world, const S3Call& call,
                                  const CopySource& source) {
  const auto bucket = world.buckets.find(source.bucket);
  if (bucket == world.buckets.end()) {
    return s3_error(404, "NoSuchBucket", "The specified bucket does not exist");
  }
  S3ObjectPtr object = bucket->second.find(source.key);
  if (!object) return no_such_key();
  if (world.quirks.ignore_copy_source_conditions) return object;
  const std::string* match = call.http.headers.find("x-amz-copy-source-if-match");
  const std::string* none_match = call.http.headers.find("x-amz-copy-source-if-none-match");
  if ((match && !etag_listed(*match, object->etag)) ||
      (none_match && etag_listed(*none_match, object->etag))) {
    return s3_error(412, "PreconditionFailed",
                    "At least one of the pre-conditions you specified did not hold");
  }
  return object;
}

std::string copy_xml(const char* root, const std::string& etag, S3Time modified) {
  XmlText xml(root);
  xml.leaf("LastModified", iso_date(modified)).leaf("ETag", etag);
  return xml.finish();
}

// "bytes=first-last" inside the source; the whole source when absent.
S3Result<std::string> slice_of(const S3Call& call, const std::string& body) {
  if (!call.has_header("x-amz-copy-source-range")) return body;
  const std::string header = call.header("x-amz-copy-source-range");
  uint64_t first = 0;
  uint64_t last = 0;
  const size_t dash = header.find('-');
  const char* const end = header.data() + header.size();
  bool ok = header.starts_with("bytes=") && dash != std::string::npos;
  if (ok) {
    const auto a = std::from_chars(header.data() + 6, header.data() + dash, first);
    const auto b = std::from_chars(header.data() + dash + 1, end, last);
    ok =
        a.ec == std::errc() && a.ptr == header.data() + dash && b.ec == std::errc() && b.ptr == end;
  }
  if (!ok) {
    return s3_error(400, "InvalidArgument",
                    "The x-amz-copy-source-range value must be of the form bytes=first-last");
  }
  if (first > last || last >= body.size()) {
    return s3_error(416, "InvalidRange",
                    "The specified copy range is invalid for the source object size");
  }
  return body.substr(first, last - first + 1);
}

}  // namespace

S3Result<HttpResponse> copy_object(S3World& world, const S3Call& call) {
  const auto source = parse_source(call);
  if (!source) return std::unexpected(source.error());
  const auto properties = read_properties(call);
  if (!properties) return std::unexpected(properties.error());
  const std::string directive = call.header("x-amz-metadata-directive");
  if (!directive.empty() && directive != "COPY" && directive != "REPLACE") {
    return s3_error(400, "InvalidArgument", "Unknown metadata directive.");
  }
  const bool replace = directive == "REPLACE";
  if (source->bucket == call.bucket && source->key == call.key && !replace) {
    return s3_error(400, "InvalidRequest",
                    "This copy request is illegal because it is trying to copy an object to itself "
                    "without changing the object's metadata.");
  }

  std::lock_guard lock(world.mutex);
  const auto from = open_source(world, call, *source);
  if (!from) return std::unexpected(from.error());
  S3Bucket& bucket = world.buckets.at(call.bucket);
  const bool ignore = world.quirks.ignore_conditions_on_copy;
  const S3ObjectPtr existing = bucket.find(call.key);
  const auto allowed = check_write_conditions(call, world, existing.get(), {ignore, ignore, false});
  if (!allowed) return std::unexpected(allowed.error());
  if (take_one(world.quirks.copy_answers_error_in_200)) return error_in_200();

  auto object = std::make_shared<S3Object>(**from);
  // A copy is written in one go, so its ETag is a plain MD5 and its checksum covers it whole.
  object->etag = '"' + to_hex(md5(object->body)) + '"';
  if (object->checksum && object->checksum->type == "COMPOSITE") {
    object->checksum = full_checksum(object->checksum->algorithm, object->body);
  }
  object->modified = call.now;
  if (replace) object->properties = *properties;
  const std::string etag = object->etag;
  bucket.objects[call.key] = std::move(object);
  return xml_response(copy_xml("CopyObjectResult", etag, call.now));
}

S3Result<HttpResponse> upload_part_copy(S3World& world, const S3Call& call) {
  const auto source = parse_source(call);
  if (!source) return std::unexpected(source.error());
  S3ObjectPtr from;
  {
    std::lock_guard lock(world.mutex);
    auto found = open_source(world, call, *source);
    if (!found) return std::unexpected(found.error());
    from = *found;
  }
  auto body = slice_of(call, from->body);
  if (!body) return std::unexpected(body.error());
  S3Part part;
  part.md5 = md5(*body);
  part.body = std::make_shared<const std::string>(std::move(*body));
  part.modified = call.now;

  std::lock_guard lock(world.mutex);
  S3Upload* upload = world.buckets.at(call.bucket).find_upload(call.query("uploadId"), call.key);
  if (!upload) return no_such_upload();
  if (!upload->checksum_algorithm.empty()) {
    part.checksum = s3_checksum(upload->checksum_algorithm, *part.body).value();
  }
  const auto stored = store_part(world, call, std::move(part));
  if (!stored) return std::unexpected(stored.error());
  const std::string etag = '"' + to_hex((*stored)->md5) + '"';
  return xml_response(copy_xml("CopyPartResult", etag, call.now));
}

}  // namespace millrace::testing
