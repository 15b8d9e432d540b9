#include "objectstore/s3/multipart_upload.h"

#include <utility>

#include <fmt/format.h>

#include "objectstore/s3/s3_headers.h"

namespace millrace::s3 {

MultipartUpload::MultipartUpload(S3Client& client, ObjectKey key, PutOptions options,
                                 std::string token)
    : client_(client),
      key_(std::move(key)),
      options_(std::move(options)),
      token_(std::move(token)) {}

Status MultipartUpload::create(const RequestContext& context, bool with_checksums) {
  S3Request request;
  request.method = HttpMethod::kPost;
  request.key = key_.value();
  request.query = {{"uploads", ""}};
  add_metadata_headers(options_.metadata, request.headers);
  add_own_metadata(kUploadTokenMetadata, token_, request.headers);
  if (with_checksums) request.headers.push_back({"x-amz-checksum-algorithm", "CRC32C"});
  MR_ASSIGN_OR_RETURN(const HttpResponse response, client_.perform(context, std::move(request)));
  MR_ASSIGN_OR_RETURN(id_, parse_create_upload(response.body.text()));
  return {};
}

S3Request MultipartUpload::part_request(int number) const {
  S3Request request;
  request.method = HttpMethod::kPut;
  request.key = key_.value();
  request.query = {{"partNumber", std::to_string(number)}, {"uploadId", id_}};
  return request;
}

Status MultipartUpload::send_complete(const RequestContext& context,
                                      std::span<const UploadedPart> parts) {
  S3Request request;
  request.method = HttpMethod::kPost;
  request.key = key_.value();
  request.query = {{"uploadId", id_}};
  request.slow_answer = true;
  request.headers.push_back({"content-type", "application/xml"});
  add_condition_headers(options_.condition, request.headers);
  request.body = Slice::from_string(write_complete(parts));
  MR_ASSIGN_OR_RETURN(const HttpResponse response, client_.perform(context, std::move(request)));
  MR_ASSIGN_OR_RETURN([[maybe_unused]] const std::string etag, parse_etag(response.body.text()));
  return {};
}

Result<std::optional<ObjectInfo>> MultipartUpload::check_condition(const RequestContext& context,
                                                                   std::uint64_t size) {
  Result<ObjectInfo> own = find_own_object(client_, context, key_, token_, size);
  if (own) return std::optional(std::move(*own));  // An earlier try of ours went through.
  const bool must_exist = options_.condition.kind == WriteCondition::Kind::kIfIdentity;
  switch (own.error().code()) {
    case StatusCode::kNotFound:
      if (!must_exist) return std::nullopt;
      return failure(StatusCode::kPreconditionFailed, own.error().message());
    case StatusCode::kPreconditionFailed:
      break;
    default:
      return failure(std::move(own).error());
  }
  if (!must_exist) return failure(std::move(own).error());
  MR_ASSIGN_OR_RETURN(const ObjectInfo now, head_object(client_, context, key_));
  if (now.identity == options_.condition.identity) return std::nullopt;
  return failure(StatusCode::kPreconditionFailed,
                 fmt::format("{} is {}, not {}", client_.url_of(key_.value()), now.identity.value(),
                             options_.condition.identity.value()));
}

Result<ObjectInfo> MultipartUpload::complete(const RequestContext& context,
                                             std::span<const UploadedPart> parts,
                                             std::uint64_t size) {
  // Some stores ignore conditions on this one request. Looking first leaves a gap, but turns a sure
  // overwrite into an unlikely one. Whoever needs a sure condition puts a small object.
  if (options_.condition.kind != WriteCondition::Kind::kNone) {
    MR_ASSIGN_OR_RETURN(std::optional<ObjectInfo> own, check_condition(context, size));
    if (own) return std::move(*own);
  }
  Status status = send_complete(context, parts);
  const bool refused = !status.ok() && !is_transient(status.code()) &&
                       status.code() != StatusCode::kNotFound &&
                       status.code() != StatusCode::kInternal;
  if (refused) return failure(std::move(status));
  Result<ObjectInfo> own = find_own_object(client_, context, key_, token_, size);
  if (own || status.ok()) return own;
  return failure(std::move(status));
}

Status MultipartUpload::abort(const RequestContext& context) {
  if (!created()) return {};
  S3Request request;
  request.method = HttpMethod::kDelete;
  request.key = key_.value();
  request.query = {{"uploadId", id_}};
  const Result<HttpResponse> response = client_.perform(context, std::move(request));
  if (response || response.error() == StatusCode::kNotFound) return {};
  return response.error();
}

namespace {

Result<HttpResponse> send_head(S3Client& client, const RequestContext& context,
                               const ObjectKey& key) {
  S3Request request;
  request.method = HttpMethod::kHead;
  request.key = key.value();
  return client.perform(context, std::move(request));
}

}  // namespace

Result<ObjectInfo> head_object(S3Client& client, const RequestContext& context,
                               const ObjectKey& key) {
  MR_ASSIGN_OR_RETURN(const HttpResponse response, send_head(client, context, key));
  return parse_object_headers(key, response.headers);
}

Result<ObjectInfo> find_own_object(S3Client& client, const RequestContext& context,
                                   const ObjectKey& key, std::string_view token,
                                   std::uint64_t size) {
  MR_ASSIGN_OR_RETURN(const HttpResponse response, send_head(client, context, key));
  MR_ASSIGN_OR_RETURN(ObjectInfo info, parse_object_headers(key, response.headers));
  if (own_metadata(response.headers, kUploadTokenMetadata) != token) {
    return failure(StatusCode::kPreconditionFailed,
                   fmt::format("{} exists and is another writer's", client.url_of(key.value())));
  }
  if (info.size != size) {
    return failure(StatusCode::kCorruption,
                   fmt::format("{} has {} bytes in the store, {} were sent",
                               client.url_of(key.value()), info.size, size));
  }
  return info;
}

}  // namespace millrace::s3
