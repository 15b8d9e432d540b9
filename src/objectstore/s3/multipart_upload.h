#pragma once

#include <optional>
#include <span>
#include <string>

#include "objectstore/object_store.h"
#include "objectstore/s3/s3_client.h"
#include "objectstore/s3/s3_xml.h"

namespace millrace::s3 {

// The requests of one multipart upload; no threads, no retries, no bytes of its own.
//
// The object carries a token in its metadata, because completing is not idempotent: when the answer
// is lost, the upload is gone and a second try says "no such upload" although the first succeeded.
// The token tells our object from anybody else's.
class MultipartUpload {
 public:
  MultipartUpload(S3Client& client, ObjectKey key, PutOptions options, std::string token);

  Status create(const RequestContext& context, bool with_checksums);
  bool created() const { return !id_.empty(); }

  // A PUT for that part, without its body.
  S3Request part_request(int number) const;

  // Makes the object. On a doubtful answer it looks for the token: success if the object is ours,
  // else the failure. kNotFound then means that the upload is gone and the object is not ours.
  Result<ObjectInfo> complete(const RequestContext& context, std::span<const UploadedPart> parts,
                              std::uint64_t size);

  // Success also when the upload is gone already.
  Status abort(const RequestContext& context);

 private:
  // Nothing when the condition holds, our own object when it is there already, else the failure.
  Result<std::optional<ObjectInfo>> check_condition(const RequestContext& context,
                                                    std::uint64_t size);
  Status send_complete(const RequestContext& context, std::span<const UploadedPart> parts);

  S3Client& client_;
  const ObjectKey key_;
  const PutOptions options_;
  const std::string token_;
  std::string id_;
};

// What HEAD says about `key`.
Result<ObjectInfo> head_object(S3Client& client, const RequestContext& context,
                               const ObjectKey& key);

// The object under `key` if it is of that size and carries that token: ours. kPreconditionFailed if
// it is somebody else's, kNotFound if there is none.
Result<ObjectInfo> find_own_object(S3Client& client, const RequestContext& context,
                                   const ObjectKey& key, std::string_view token,
                                   std::uint64_t size);

}  // namespace millrace::s3
