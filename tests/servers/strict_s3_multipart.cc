// Multipart uploads up to their completion: create, part, abort and the two listings.
#include <charconv>

#include <fmt/format.h>

#include "tests/servers/strict_s3_digest.h"
#include "tests/servers/strict_s3_operations.h"

namespace millrace::testing {
namespace {

constexpr int kPartNumberMax = 10'000;

// Checks x-amz-checksum-algorithm and -type and writes them into the upload.
S3Result<void> choose_checksum(const S3Call& call, S3Upload& upload) {
  const std::string algorithm = call.header("x-amz-checksum-algorithm");
  const std::string type = call.header("x-amz-checksum-type");
  if (algorithm.empty() && type.empty()) return {};
  if (!s3_checksum(algorithm, "")) {
    return s3_error(400, "InvalidRequest", "Checksum algorithm provided is unsupported.");
  }
  const bool is_sha = algorithm.starts_with("SHA");
  const bool is_crc64 = algorithm == "CRC64NVME";
  upload.checksum_algorithm = algorithm;
  upload.checksum_type = !type.empty() ? type : is_crc64 ? "FULL_OBJECT" : "COMPOSITE";
  const bool full = upload.checksum_type == "FULL_OBJECT";
  if ((!full && upload.checksum_type != "COMPOSITE") || (full && is_sha) || (!full && is_crc64)) {
    return s3_error(
        400, "InvalidRequest",
        fmt::format("The {} checksum type cannot be used with the {} checksum algorithm.",
                    upload.checksum_type, algorithm));
  }
  return {};
}

}  // namespace

std::unexpected<S3Error> no_such_upload() {
  return s3_error(
      404, "NoSuchUpload",
      "The specified upload does not exist. The upload ID may be invalid, or the upload "
      "may have been aborted or completed.");
}

std::optional<int> parse_part_number(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  if (number < 1 || number > kPartNumberMax) return {};
  return number;
}

S3Result<S3Part*> store_part(S3World& world, const S3Call& call, S3Part part) {
  const std::optional<int> number = parse_part_number(call.query("partNumber"));
  if (!number) {
    return s3_error(400, "InvalidArgument",
                    "Part number must be an integer between 1 and 10000, inclusive");
  }
  S3Upload* upload = world.buckets.at(call.bucket).find_upload(call.query("uploadId"), call.key);
  if (!upload) return no_such_upload();
  return &(upload->parts[*number] = std::move(part));
}

S3Result<HttpResponse> create_upload(S3World& world, const S3Call& call) {
  S3Upload upload;
  const auto properties = read_properties(call);
  if (!properties) return std::unexpected(properties.error());
  if (call.checksums) {
    if (auto chosen = choose_checksum(call, upload); !chosen) {
      return std::unexpected(chosen.error());
    }
  }
  upload.key = call.key;
  upload.properties = *properties;
  upload.initiated = call.now;
  HttpResponse response;
  if (!upload.checksum_algorithm.empty()) {
    response.headers.add("x-amz-checksum-algorithm", upload.checksum_algorithm);
    response.headers.add("x-amz-checksum-type", upload.checksum_type);
  }

  std::lock_guard lock(world.mutex);
  // Long and with characters that need escaping in a query, as AWS's ids may have.
  const std::string id = to_base64(sha256(fmt::format("upload {}", world.next_id++))) + "+/u";
  world.buckets.at(call.bucket).uploads[id] = std::move(upload);
  XmlText xml("InitiateMultipartUploadResult");
  xml.leaf("Bucket", call.bucket).leaf("Key", call.key).leaf("UploadId", id);
  response.headers.add("Content-Type", "application/xml");
  response.body = xml.finish();
  return response;
}

S3Result<HttpResponse> upload_part(S3World& world, const S3Call& call) {
  const auto payload = verify_payload(call);
  if (!payload) return std::unexpected(payload.error());
  S3Part part;
  part.md5 = payload->md5;
  part.body = std::make_shared<const std::string>(call.http.body);
  part.modified = call.now;
  HttpResponse response;
  response.headers.add("ETag", '"' + to_hex(part.md5) + '"');
  if (payload->checksum) {
    part.checksum = from_base64(payload->checksum->value).value();
    response.headers.add(checksum_header(payload->checksum->algorithm), payload->checksum->value);
  }

  std::lock_guard lock(world.mutex);
  S3Upload* upload = world.buckets.at(call.bucket).find_upload(call.query("uploadId"), call.key);
  if (!upload) return no_such_upload();
  const std::string sent = payload->checksum ? payload->checksum->algorithm : "";
  // Stricter than AWS, which computes what is missing: a client that asked for end-to-end
  // checksums and then forgets one has a hole in them.
  if (call.checksums && sent != upload->checksum_algorithm) {
    return s3_error(
        400, "InvalidRequest",
        fmt::format("Checksum Type mismatch occurred, expected checksum Type: {}, "
                    "actual checksum Type: {}",
                    upload->checksum_algorithm.empty() ? "null" : upload->checksum_algorithm,
                    sent.empty() ? "null" : sent));
  }
  const auto stored = store_part(world, call, std::move(part));
  if (!stored) return std::unexpected(stored.error());
  return response;
}

S3Result<HttpResponse> abort_upload(S3World& world, const S3Call& call) {
  std::lock_guard lock(world.mutex);
  S3Bucket& bucket = world.buckets.at(call.bucket);
  if (!bucket.find_upload(call.query("uploadId"), call.key)) return no_such_upload();
  bucket.uploads.erase(call.query("uploadId"));
  HttpResponse response;
  response.status = 204;
  return response;
}

S3Result<HttpResponse> list_parts(S3World& world, const S3Call& call) {
  const std::string after_text = call.query("part-number-marker");
  const int after = after_text.empty() || after_text == "0"
                        ? 0
                        : parse_part_number(after_text).value_or(kPartNumberMax);
  const size_t max_parts = 1000;
  std::lock_guard lock(world.mutex);
  const S3Upload* upload =
      world.buckets.at(call.bucket).find_upload(call.query("uploadId"), call.key);
  if (!upload) return no_such_upload();
  XmlText xml("ListPartsResult");
  xml.leaf("Bucket", call.bucket).leaf("Key", call.key).leaf("UploadId", call.query("uploadId"));
  size_t given = 0;
  int last = after;
  auto it = upload->parts.upper_bound(after);
  for (; it != upload->parts.end() && given < max_parts; ++it, ++given) {
    last = it->first;
    xml.open("Part").leaf("PartNumber", std::to_string(last));
    xml.leaf("LastModified", iso_date(it->second.modified));
    xml.leaf("ETag", '"' + to_hex(it->second.md5) + '"');
    xml.leaf("Size", std::to_string(it->second.body->size())).close("Part");
  }
  xml.leaf("PartNumberMarker", std::to_string(after));
  xml.leaf("NextPartNumberMarker", std::to_string(last)).leaf("MaxParts", "1000");
  xml.leaf("IsTruncated", it == upload->parts.end() ? "false" : "true");
  return xml_response(xml.finish());
}

S3Result<HttpResponse> list_uploads(S3World& world, const S3Call& call) {
  const std::string prefix = call.query("prefix");
  std::lock_guard lock(world.mutex);
  // S3 lists by key and then by age; ids have no order of their own.
  std::multimap<std::pair<std::string, S3Time>, std::string> ordered;
  for (const auto& [id, upload] : world.buckets.at(call.bucket).uploads) {
    if (upload.key.starts_with(prefix)) ordered.insert({{upload.key, upload.initiated}, id});
  }
  XmlText xml("ListMultipartUploadsResult");
  xml.leaf("Bucket", call.bucket).leaf("Prefix", prefix).leaf("IsTruncated", "false");
  for (const auto& [order, id] : ordered) {
    xml.open("Upload").leaf("Key", order.first).leaf("UploadId", id);
    xml.leaf("Initiated", iso_date(order.second)).close("Upload");
  }
  return xml_response(xml.finish());
}

}  // namespace millrace::testing
