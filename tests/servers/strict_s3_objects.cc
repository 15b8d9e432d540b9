// PutObject and DeleteObject.
#include "tests/servers/strict_s3_digest.h"
#include "tests/servers/strict_s3_operations.h"

namespace millrace::testing {

std::unexpected<S3Error> no_such_key() {
  return s3_error(404, "NoSuchKey", "The specified key does not exist.");
}

S3Result<HttpResponse> put_object(S3World& world, const S3Call& call) {
  const auto payload = verify_payload(call);
  if (!payload) return std::unexpected(payload.error());
  const auto properties = read_properties(call);
  if (!properties) return std::unexpected(properties.error());

  auto object = std::make_shared<S3Object>();
  object->body = call.http.body;
  object->etag = '"' + to_hex(payload->md5) + '"';
  object->properties = *properties;
  object->modified = call.now;
  HttpResponse response;
  response.headers.add("ETag", object->etag);
  if (call.checksums) {
    // S3 adds a CRC64NVME of its own when the client sends no checksum.
    object->checksum =
        payload->checksum ? *payload->checksum : full_checksum("CRC64NVME", object->body);
    response.headers.add(checksum_header(object->checksum->algorithm), object->checksum->value);
    response.headers.add("x-amz-checksum-type", object->checksum->type);
  }

  std::lock_guard lock(world.mutex);
  S3Bucket& bucket = world.buckets.at(call.bucket);
  const S3ObjectPtr existing = bucket.find(call.key);
  const auto allowed =
      check_write_conditions(call, world, existing.get(),
                             {.ignore_none_match = world.quirks.ignore_if_none_match_on_put,
                              .refuse_quoted_match = world.quirks.refuse_quoted_if_match});
  if (!allowed) return std::unexpected(allowed.error());
  bucket.objects[call.key] = std::move(object);
  response.drop_connection = take_one(world.quirks.lose_put_answer);
  return response;
}

S3Result<HttpResponse> delete_object(S3World& world, const S3Call& call) {
  std::lock_guard lock(world.mutex);
  S3Bucket& bucket = world.buckets.at(call.bucket);
  if (world.quirks.undeletable_keys.contains(call.key)) {
    return s3_error(403, "AccessDenied", "Access Denied");
  }
  HttpResponse response;
  response.status = 204;
  const S3ObjectPtr existing = bucket.find(call.key);
  // An absent key is a success for S3 also under If-Match: the outcome is what was wanted.
  if (!existing) return response;
  if (call.has_header("If-Match") && !world.quirks.ignore_if_match_on_delete &&
      !etag_listed(call.header("If-Match"), existing->etag)) {
    return s3_error(412, "PreconditionFailed",
                    "At least one of the pre-conditions you specified did not hold");
  }
  bucket.objects.erase(call.key);
  return response;
}

}  // namespace millrace::testing
