#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "objectstore/s3/s3_headers.h"
#include "objectstore/s3/s3_object_store.h"
#include "objectstore/s3/s3_upload.h"

// The server-side copy of S3ObjectStore, whole and by parts.
namespace millrace::s3 {
namespace {

void add_copy_source(const S3Client& client, const ObjectInfo& source, S3Request& request) {
  request.slow_answer = true;
  request.headers.push_back({"x-amz-copy-source", "/" + encode_uri_path(client.options().bucket +
                                                                        "/" + source.key.value())});
  if (!source.identity.value().empty()) {
    request.headers.push_back({"x-amz-copy-source-if-match", source.identity.value()});
  }
}

}  // namespace

Status S3ObjectStore::copy_whole(const RequestContext& context, const ObjectInfo& source,
                                 const ObjectKey& target) {
  S3Request request;
  request.method = HttpMethod::kPut;
  request.key = target.value();
  add_copy_source(client_, source, request);
  MR_ASSIGN_OR_RETURN(const HttpResponse response, client_.perform(context, std::move(request)));
  MR_ASSIGN_OR_RETURN([[maybe_unused]] const std::string etag, parse_etag(response.body.text()));
  return {};
}

Status S3ObjectStore::copy_by_parts(const RequestContext& context, const ObjectInfo& source,
                                    const ObjectKey& target) {
  PutOptions options;
  options.metadata = source.metadata;
  MultipartUpload upload(client_, target, options, environment_.random.token());
  MR_RETURN_IF_ERROR(upload.create(context, /*with_checksums=*/false));
  const std::uint64_t part_bytes =
      std::max(client_.options().copy_part_bytes, (source.size + kPartsMax - 1) / kPartsMax);
  std::vector<UploadedPart> parts;
  for (std::uint64_t offset = 0; offset < source.size; offset += part_bytes) {
    const std::uint64_t last = std::min(source.size, offset + part_bytes) - 1;
    S3Request request = upload.part_request(static_cast<int>(parts.size()) + 1);
    add_copy_source(client_, source, request);
    request.headers.push_back(
        {"x-amz-copy-source-range", fmt::format("bytes={}-{}", offset, last)});
    Result<HttpResponse> response = client_.perform(context, std::move(request));
    Result<std::string> etag =
        response ? parse_etag(response->body.text()) : failure(response.error());
    if (!etag) {
      (void)upload.abort(context);
      return std::move(etag).error();
    }
    parts.push_back({static_cast<int>(parts.size()) + 1, std::move(*etag), ""});
  }
  Result<ObjectInfo> done = upload.complete(context, parts, source.size);
  if (done) return {};
  (void)upload.abort(context);
  return std::move(done).error();
}

Status S3ObjectStore::check_source(const RequestContext& context, const ObjectInfo& source) {
  if (source.identity.value().empty()) return {};
  MR_ASSIGN_OR_RETURN(const ObjectInfo now, head(context, source.key));
  if (now.identity == source.identity) return {};
  return {StatusCode::kPreconditionFailed,
          fmt::format("{} has changed: it is {}, not {}", client_.url_of(source.key.value()),
                      now.identity.value(), source.identity.value())};
}

Result<ObjectInfo> S3ObjectStore::copy(const RequestContext& context, const ObjectInfo& source,
                                       const ObjectKey& target) {
  MR_RETURN_IF_ERROR(validate_key(source.key));
  MR_RETURN_IF_ERROR(validate_key(target));
  // Some stores ignore the condition on the source, so it is looked at before and after: what
  // changed in between may be what was copied.
  MR_RETURN_IF_ERROR(check_source(context, source));
  if (source.key == target) return head(context, target);
  if (source.size > client_.options().copy_bytes_max) {
    // Parts carry no metadata: it is read first and given to the new object.
    MR_ASSIGN_OR_RETURN(ObjectInfo whole, head(context, source.key));
    if (!source.identity.value().empty()) whole.identity = source.identity;
    MR_RETURN_IF_ERROR(copy_by_parts(context, whole, target));
  } else {
    MR_RETURN_IF_ERROR(copy_whole(context, source, target));
  }
  MR_RETURN_IF_ERROR(check_source(context, source));
  return head(context, target);
}

}  // namespace millrace::s3
