// DeleteObjects: up to a thousand keys in one POST, each with its own outcome.
#include <string>
#include <vector>

#include <pugixml.hpp>

#include "tests/servers/strict_s3_operations.h"

namespace millrace::testing {
namespace {

struct Deletion {
  std::string key;
  std::string etag;  // "": unconditional.
};

struct DeleteRequest {
  std::vector<Deletion> deletions;
  bool quiet = false;
};

S3Result<DeleteRequest> parse_delete(const std::string& body) {
  const auto malformed = [] {
    return s3_error(400, "MalformedXML",
                    "The XML you provided was not well-formed or did not validate.");
  };
  pugi::xml_document document;
  // Without parse_ws_pcdata_single a key of blanks would be read as an empty one.
  if (!document.load_buffer(body.data(), body.size(),
                            pugi::parse_default | pugi::parse_ws_pcdata_single)) {
    return malformed();
  }
  const pugi::xml_node root = document.child("Delete");
  if (!root) return malformed();
  DeleteRequest request;
  for (const pugi::xml_node& node : root.children()) {
    if (node.type() != pugi::node_element) continue;
    const std::string_view name = node.name();
    if (name == "Quiet") {
      request.quiet = std::string_view(node.text().get()) == "true";
    } else if (name == "Object" && node.child("Key")) {
      request.deletions.push_back(
          {node.child("Key").text().get(), node.child("ETag").text().get()});
    } else {
      return malformed();
    }
  }
  if (request.deletions.empty() || request.deletions.size() > kKeysMax) return malformed();
  return request;
}

// Deletes one key; success also when there was none. The caller holds the lock.
S3Result<void> delete_one(S3World& world, S3Bucket& bucket, const Deletion& deletion) {
  if (deletion.key.empty() || deletion.key.size() > kKeyBytesMax) {
    return s3_error(400, "KeyTooLongError", "Your key is empty or too long");
  }
  if (world.quirks.undeletable_keys.contains(deletion.key)) {
    return s3_error(403, "AccessDenied", "Access Denied");
  }
  const S3ObjectPtr existing = bucket.find(deletion.key);
  if (existing && !deletion.etag.empty() && !etag_listed(deletion.etag, existing->etag)) {
    return s3_error(412, "PreconditionFailed", "The ETag given for this key is not its ETag");
  }
  bucket.objects.erase(deletion.key);
  return {};
}

}  // namespace

S3Result<HttpResponse> delete_objects(S3World& world, const S3Call& call) {
  const auto payload = verify_payload(call);
  if (!payload) return std::unexpected(payload.error());
  if (call.checksums && !call.has_header("Content-MD5") && !payload->checksum) {
    return s3_error(400, "InvalidRequest",
                    "Missing required header for this request: Content-MD5 OR x-amz-checksum-*");
  }
  const auto request = parse_delete(call.http.body);
  if (!request) return std::unexpected(request.error());

  std::lock_guard lock(world.mutex);
  S3Bucket& bucket = world.buckets.at(call.bucket);
  XmlText xml("DeleteResult");
  for (const Deletion& deletion : request->deletions) {
    const auto deleted = delete_one(world, bucket, deletion);
    if (!deleted) {
      xml.open("Error").leaf("Key", deletion.key).leaf("Code", deleted.error().code);
      xml.leaf("Message", deleted.error().message).close("Error");
    } else if (!request->quiet) {
      xml.open("Deleted").leaf("Key", deletion.key).close("Deleted");
    }
  }
  return xml_response(xml.finish());
}

}  // namespace millrace::testing
