#include "objectstore/s3/s3_object_store.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/time_format.h"
#include "base/units.h"
#include "objectstore/s3/s3_headers.h"
#include "objectstore/s3/s3_upload.h"

namespace millrace::s3 {
namespace {

// A page of 1000 keys of 1024 bytes, three bytes per byte when encoded, with room for the rest.
constexpr std::uint64_t kListBytesMax = 8 * kMiB;
constexpr std::size_t kRemoveKeysMax = 1000;
// Larger positions overflow in some stores; no object is near it.
constexpr std::uint64_t kLastByteMax = std::numeric_limits<std::int64_t>::max();

// XML 1.0 cannot name these, so such keys are removed one by one.
bool fits_xml(const ObjectKey& key) {
  return std::ranges::none_of(key.value(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r';
  });
}

}  // namespace

S3ObjectStore::S3ObjectStore(S3Options options, std::shared_ptr<CachedCredentials> credentials,
                             S3Environment environment, std::shared_ptr<RetryControl> part_retries)
    : client_(std::move(options), environment.http, environment.clock, std::move(credentials)),
      environment_(environment),
      part_retries_(std::move(part_retries)) {}

S3ObjectStore::~S3ObjectStore() = default;

std::string S3ObjectStore::describe() const {
  return fmt::format("{} at {}", client_.url_of(""), client_.endpoint());
}

ThreadPool& S3ObjectStore::part_threads() {
  MutexLock lock(mutex_);
  if (part_threads_ == nullptr) {
    part_threads_ = std::make_unique<ThreadPool>(
        ThreadPoolOptions{.name = "s3-part", .threads = client_.options().part_threads});
  }
  return *part_threads_;
}

void S3ObjectStore::get_range(const RequestContext& context, GetRequest request,
                              Completion<GetResult> done) {
  if (Status status = validate_key(request.key); !status.ok()) {
    return done.complete(failure(std::move(status)));
  }
  S3Request s3;
  s3.key = request.key.value();
  s3.pool = environment_.pool;
  s3.response_bytes_max = request.bytes_max;
  if (request.range) {
    const ByteRange range = *request.range;
    if (range.empty()) {
      return done.complete(
          failure(StatusCode::kInvalidArgument,
                  fmt::format("an empty range of '{}' was asked for", request.key.value())));
    }
    // A length beyond all objects means "to the end".
    const std::uint64_t last =
        std::min(range.length - 1, kLastByteMax - range.offset) + range.offset;
    s3.response_bytes_max = range.length;
    s3.headers.push_back({"range", fmt::format("bytes={}-{}", range.offset, last)});
  } else if (client_.options().checksums) {
    s3.headers.push_back({"x-amz-checksum-mode", "ENABLED"});
  }
  if (request.identity) s3.headers.push_back({"if-match", request.identity->value()});
  client_.send(context, std::move(s3),
               Completion<HttpResponse>(
                   inline_executor(), [request = std::move(request), done = std::move(done)](
                                          Result<HttpResponse> response) mutable {
                     if (response) return done.complete(parse_get(request, std::move(*response)));
                     Status status = std::move(response).error();
                     if (status == StatusCode::kInternal && !request.range) {
                       // Larger than the caller planned for: nothing is wrong with the store.
                       status = Status(StatusCode::kInvalidArgument, status.message());
                     }
                     done.complete(failure(std::move(status)));
                   }));
}

Result<ObjectInfo> S3ObjectStore::head(const RequestContext& context, const ObjectKey& key) {
  MR_RETURN_IF_ERROR(validate_key(key));
  return head_object(client_, context, key);
}

Result<ListPage> S3ObjectStore::list(const RequestContext& context, const ListRequest& request) {
  S3Request s3;
  s3.response_bytes_max = kListBytesMax;
  // Keys may hold what XML cannot: let the store encode them.
  s3.query = {
      {"list-type", "2"},
      {"encoding-type", "url"},
      {"max-keys", std::to_string(std::clamp<std::uint32_t>(request.entries_max, 1, 1000))}};
  if (!request.prefix.empty()) s3.query.emplace_back("prefix", request.prefix);
  if (request.fold_directories) s3.query.emplace_back("delimiter", "/");
  if (!request.continuation.empty()) {
    s3.query.emplace_back("continuation-token", request.continuation);
  } else if (!request.start_after.empty()) {
    s3.query.emplace_back("start-after", request.start_after);
  }
  MR_ASSIGN_OR_RETURN(const HttpResponse response, client_.perform(context, std::move(s3)));
  MR_ASSIGN_OR_RETURN(ListPage page, parse_list(response.body.text()));
  if (!page.continuation.empty() && page.continuation == request.continuation) {
    return failure(StatusCode::kInternal,
                   fmt::format("listing {} does not advance: the store repeats a page",
                               client_.url_of(request.prefix)));
  }
  return page;
}

Result<ObjectInfo> S3ObjectStore::put(const RequestContext& context, const ObjectKey& key,
                                      Slice data, const PutOptions& options) {
  MR_RETURN_IF_ERROR(validate_key(key));
  MR_RETURN_IF_ERROR(validate_metadata(options.metadata));
  Result<ObjectInfo> info = put_once(context, key, data, options);
  const bool replacing = options.condition.kind == WriteCondition::Kind::kIfIdentity;
  if (info || !replacing || info.error() != StatusCode::kPreconditionFailed) return info;
  // Ceph up to 18 takes an ETag in If-Match only without its quotes. If the object is the demanded
  // one after all, that is why it refused; asking again that way is as atomic as the first time.
  std::string_view bare = options.condition.identity.value();
  if (bare.size() < 2 || bare.front() != '"' || bare.back() != '"') return info;
  bare = bare.substr(1, bare.size() - 2);
  const Result<ObjectInfo> now = head(context, key);
  if (!now || now->identity != options.condition.identity) return info;
  PutOptions unquoted = options;
  unquoted.condition.identity = ObjectIdentity(std::string(bare));
  return put_once(context, key, std::move(data), unquoted);
}

Result<ObjectInfo> S3ObjectStore::put_once(const RequestContext& context, const ObjectKey& key,
                                           Slice data, const PutOptions& options) {
  S3Request request;
  request.method = HttpMethod::kPut;
  request.key = key.value();
  const std::uint32_t crc = crc32c(data.bytes());
  add_metadata_headers(options.metadata, request.headers);
  add_own_metadata(kChecksumMetadata, fmt::format("{:08x}", crc), request.headers);
  add_condition_headers(options.condition, request.headers);
  if (client_.options().checksums) {
    request.headers.push_back({"x-amz-sdk-checksum-algorithm", "CRC32C"});
    request.headers.push_back({"x-amz-checksum-crc32c", encode_crc32c(crc)});
  }
  ObjectInfo info;
  info.key = key;
  info.size = data.size();
  info.metadata = options.metadata;
  request.body = std::move(data);
  Result<HttpResponse> response = client_.perform(context, std::move(request));
  if (!response) {
    const bool demanded_object = options.condition.kind == WriteCondition::Kind::kIfIdentity;
    if (demanded_object && response.error() == StatusCode::kNotFound) {
      // AWS says 404 when the object that must match is gone: the condition does not hold.
      return failure(StatusCode::kPreconditionFailed, response.error().message());
    }
    return failure(std::move(response).error());
  }
  info.identity = ObjectIdentity(std::string(response->headers.get("etag")));
  if (info.identity.value().empty()) {
    return failure(StatusCode::kInternal,
                   fmt::format("PUT {}: the store gave no ETag", client_.url_of(key.value())));
  }
  const std::string_view echoed = response->headers.get("x-amz-checksum-crc32c");
  if (!echoed.empty() && echoed != encode_crc32c(crc)) {
    return failure(StatusCode::kCorruption,
                   fmt::format("PUT {}: the store received other bytes (checksum {}, sent {})",
                               client_.url_of(key.value()), echoed, encode_crc32c(crc)));
  }
  if (auto now = parse_http_date(response->headers.get("date"))) info.modified = *now;
  return info;
}

Result<std::unique_ptr<Upload>> S3ObjectStore::start_upload(const RequestContext& context,
                                                            const ObjectKey& key,
                                                            const PutOptions& options) {
  MR_RETURN_IF_ERROR(validate_key(key));
  MR_RETURN_IF_ERROR(validate_metadata(options.metadata));
  MR_RETURN_IF_ERROR(context.check(environment_.clock));
  return std::make_unique<S3Upload>(*this, key, options);
}

Status S3ObjectStore::remove_one(const RequestContext& context, const ObjectKey& key) {
  S3Request request;
  request.method = HttpMethod::kDelete;
  request.key = key.value();
  Result<HttpResponse> response = client_.perform(context, std::move(request));
  if (response || response.error() == StatusCode::kNotFound) {
    // A bucket that is not there is not "nothing to remove".
    if (!response && response.error().message().contains("NoSuchBucket")) return response.error();
    return {};
  }
  return std::move(response).error();
}

Status S3ObjectStore::remove_batch(const RequestContext& context, std::span<const ObjectKey> keys) {
  S3Request request;
  request.method = HttpMethod::kPost;
  request.query = {{"delete", ""}};
  request.body = Slice::from_string(write_remove(keys));
  request.headers.push_back({"content-type", "application/xml"});
  // S3 demands a checksum here; older stores know only this one.
  request.headers.push_back({"content-md5", md5_base64(request.body.bytes())});
  MR_ASSIGN_OR_RETURN(const HttpResponse response, client_.perform(context, std::move(request)));
  MR_ASSIGN_OR_RETURN(const auto failures, parse_remove(response.body.text()));
  for (const RemoveFailure& failed : failures) {
    if (failed.code == "NoSuchKey") continue;
    return status_of({response.status, {failed.code, failed.message, ""}}, response,
                     fmt::format("removing {} ({} of {} keys failed)", client_.url_of(failed.key),
                                 failures.size(), keys.size()));
  }
  return {};
}

Status S3ObjectStore::remove(const RequestContext& context, std::span<const ObjectKey> keys) {
  for (const ObjectKey& key : keys)
    MR_RETURN_IF_ERROR(validate_key(key));
  std::vector<ObjectKey> batch;
  const auto flush = [&]() -> Status {
    if (batch.empty()) return {};
    if (batch.size() > 1 && batch_remove_works_.load(std::memory_order_relaxed)) {
      Status status = remove_batch(context, batch);
      if (status != StatusCode::kUnsupported) {
        batch.clear();
        return status;
      }
      batch_remove_works_ = false;  // Google's XML API, among others.
    }
    for (const ObjectKey& key : batch)
      MR_RETURN_IF_ERROR(remove_one(context, key));
    batch.clear();
    return {};
  };
  for (const ObjectKey& key : keys) {
    if (!fits_xml(key)) {
      MR_RETURN_IF_ERROR(remove_one(context, key));
      continue;
    }
    batch.push_back(key);
    if (batch.size() == kRemoveKeysMax) MR_RETURN_IF_ERROR(flush());
  }
  return flush();
}

}  // namespace millrace::s3
