// CompleteMultipartUpload, where an upload becomes an object, or says that it did.
#include <vector>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "tests/servers/strict_s3_digest.h"
#include "tests/servers/strict_s3_operations.h"

namespace millrace::testing {
namespace {

struct ListedPart {
  int number = 0;
  std::string etag;
  std::string checksum;  // Base64, by the upload's algorithm; "" when not given.
};

S3Result<std::vector<ListedPart>> parse_parts(const std::string& body,
                                              const std::string& algorithm) {
  const auto malformed = [] {
    return s3_error(400, "MalformedXML",
                    "The XML you provided was not well-formed or did not validate.");
  };
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size())) return malformed();
  const pugi::xml_node root = document.child("CompleteMultipartUpload");
  if (!root || !root.child("Part")) return malformed();
  std::vector<ListedPart> parts;
  for (const pugi::xml_node& node : root.children()) {
    const std::optional<int> number = parse_part_number(node.child("PartNumber").text().get());
    if (std::string_view(node.name()) != "Part" || !number || !node.child("ETag")) {
      return malformed();
    }
    ListedPart part{*number, node.child("ETag").text().get(), ""};
    if (!algorithm.empty())
      part.checksum = node.child(("Checksum" + algorithm).c_str()).text().get();
    if (!parts.empty() && parts.back().number >= part.number) {
      return s3_error(400, "InvalidPartOrder",
                      "The list of parts was not in ascending order. Parts must be ordered by part "
                      "number.");
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

S3Result<void> check_part(const S3Upload& upload, const ListedPart& listed, bool last,
                          uint64_t bytes_min) {
  const auto it = upload.parts.find(listed.number);
  const auto invalid = s3_error(
      400, "InvalidPart",
      fmt::format("Part {} could not be found, or its ETag or checksum is not the one given.",
                  listed.number));
  if (it == upload.parts.end()) return invalid;
  const S3Part& part = it->second;
  if (!etag_listed(listed.etag, '"' + to_hex(part.md5) + '"') || listed.etag == "*") {
    return invalid;
  }
  if (upload.checksum_type == "COMPOSITE" && listed.checksum.empty()) {
    return s3_error(400, "InvalidRequest",
                    fmt::format("The upload was created using a {} checksum. The complete request "
                                "must include the checksum for each part. It was missing for part "
                                "{} in the request.",
                                upload.checksum_algorithm, listed.number));
  }
  if (!listed.checksum.empty() && listed.checksum != to_base64(part.checksum)) return invalid;
  if (!last && part.body->size() < bytes_min) {
    return s3_error(400, "EntityTooSmall",
                    "Your proposed upload is smaller than the minimum allowed object size.");
  }
  return {};
}

std::shared_ptr<S3Object> assemble(const S3Call& call, const S3Upload& upload,
                                   const std::vector<ListedPart>& listed) {
  auto object = std::make_shared<S3Object>();
  std::string md5s;
  std::string checksums;
  for (const ListedPart& entry : listed) {
    const S3Part& part = upload.parts.at(entry.number);
    object->body += *part.body;
    md5s += part.md5;
    checksums += part.checksum;
  }
  object->etag = fmt::format("\"{}-{}\"", to_hex(md5(md5s)), listed.size());
  object->properties = upload.properties;
  object->modified = call.now;
  if (!call.checksums) return object;
  if (upload.checksum_type == "COMPOSITE") {
    const std::string raw = s3_checksum(upload.checksum_algorithm, checksums).value();
    object->checksum = S3Checksum{upload.checksum_algorithm, "COMPOSITE",
                                  fmt::format("{}-{}", to_base64(raw), listed.size())};
  } else {
    // Also when the client asked for none: S3 then keeps a CRC64NVME of its own.
    const bool chosen = !upload.checksum_algorithm.empty();
    object->checksum =
        full_checksum(chosen ? upload.checksum_algorithm : "CRC64NVME", object->body);
  }
  return object;
}

// x-amz-checksum-* and x-amz-mp-object-size of the request, when given, against the outcome.
S3Result<void> check_whole(const S3Call& call, const S3Object& object) {
  const std::string size = call.header("x-amz-mp-object-size");
  if (!size.empty() && size != std::to_string(object.body.size())) {
    return s3_error(400, "InvalidRequest",
                    "The provided 'x-amz-mp-object-size' header does not match what was computed.");
  }
  if (!object.checksum) return {};
  const std::string type = call.header("x-amz-checksum-type");
  if (!type.empty() && type != object.checksum->type) {
    return s3_error(400, "InvalidRequest", "The checksum type is not that of the upload.");
  }
  const std::string claimed = call.header(checksum_header(object.checksum->algorithm));
  if (claimed.empty() || claimed == object.checksum->value) return {};
  return s3_error(400, "BadDigest",
                  "The checksum you specified did not match the calculated checksum.");
}

std::string complete_xml(const S3Call& call, const S3Object& object) {
  XmlText xml("CompleteMultipartUploadResult");
  xml.leaf("Location", "/" + call.bucket + "/" + call.key).leaf("Bucket", call.bucket);
  xml.leaf("Key", call.key).leaf("ETag", object.etag);
  if (object.checksum) {
    xml.leaf("Checksum" + object.checksum->algorithm, object.checksum->value);
    xml.leaf("ChecksumType", object.checksum->type);
  }
  return xml.finish();
}

}  // namespace

HttpResponse error_in_200() {
  S3Error error;
  error.code = "InternalError";
  error.message = "We encountered an internal error. Please try again.";
  const std::string xml = error_xml(error, "/", "error-in-200");
  // S3 sends blanks while it works, so the status is long gone when the error comes.
  const size_t after_declaration = xml.find('\n');
  HttpResponse response = xml_response(xml.substr(0, after_declaration) + std::string(64, ' ') +
                                       xml.substr(after_declaration));
  response.chunked = true;
  return response;
}

S3Result<HttpResponse> complete_upload(S3World& world, const S3Call& call) {
  std::lock_guard lock(world.mutex);
  S3Bucket& bucket = world.buckets.at(call.bucket);
  const std::string id = call.query("uploadId");
  const S3Upload* upload = bucket.find_upload(id, call.key);
  if (!upload) return no_such_upload();
  const auto listed = parse_parts(call.http.body, upload->checksum_algorithm);
  if (!listed) return std::unexpected(listed.error());
  for (const ListedPart& part : *listed) {
    const bool last = part.number == listed->back().number;
    const auto valid = check_part(*upload, part, last, world.options.part_bytes_min);
    if (!valid) return std::unexpected(valid.error());
  }
  const bool ignore = world.quirks.ignore_conditions_on_complete;
  const S3ObjectPtr existing = bucket.find(call.key);
  const auto allowed = check_write_conditions(call, world, existing.get(), {ignore, ignore, false});
  if (!allowed) return std::unexpected(allowed.error());
  if (take_one(world.quirks.complete_answers_error_in_200)) return error_in_200();

  std::shared_ptr<S3Object> object = assemble(call, *upload, *listed);
  if (auto same = check_whole(call, *object); !same) return std::unexpected(same.error());
  HttpResponse response = xml_response(complete_xml(call, *object));
  bucket.objects[call.key] = std::move(object);
  bucket.uploads.erase(id);
  response.drop_connection = take_one(world.quirks.lose_complete_answer);
  return response;
}

}  // namespace millrace::testing
