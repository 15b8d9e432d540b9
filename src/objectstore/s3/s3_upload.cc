#include "objectstore/s3/s3_upload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/log.h"
#include "base/units.h"
#include "objectstore/retry_loop.h"
#include "objectstore/s3/s3_headers.h"

namespace millrace::s3 {
namespace {

// How long a dying upload may take to free its parts in the store.
constexpr Duration kAbortTime = std::chrono::seconds(30);

std::uint64_t choose_part_bytes(const S3Options& options, std::uint64_t size_hint) {
  const std::uint64_t needed = (size_hint + kPartsMax - 1) / kPartsMax;
  return std::max(options.part_bytes, (needed + kMiB - 1) / kMiB * kMiB);
}

}  // namespace

S3Upload::S3Upload(S3ObjectStore& store, ObjectKey key, PutOptions options)
    : store_(store),
      key_(std::move(key)),
      options_(std::move(options)),
      token_(store.environment_.random.token()),
      part_bytes_(choose_part_bytes(store.client_.options(), options_.size_hint)),
      multipart_(store.client_, key_, options_, token_),
      in_flight_("upload_parts_in_flight", Limiter::Unit::kCount,
                 store.client_.options().parts_in_flight_max) {}

S3Upload::~S3Upload() {
  if (ended_) return;
  const TimePoint deadline = system_clock().now() + kAbortTime;
  const Status status = abort(RequestContext(deadline, "millrace"));
  if (!status.ok()) {
    log_warn("an abandoned upload could not be freed; a lifecycle rule of the bucket will",
             {{"object", store_.client_.url_of(key_.value())}, {"error", status.message()}});
  }
}

Status S3Upload::write(const RequestContext& context, Slice data) {
  if (ended_) return {StatusCode::kInvalidArgument, "the upload has ended"};
  {
    MutexLock lock(mutex_);
    if (!failure_.ok()) return failure_;
  }
  MR_RETURN_IF_ERROR(context.check(store_.environment_.clock));
  total_bytes_ += data.size();
  pending_bytes_ += data.size();
  if (!data.empty()) pending_.push_back(std::move(data));
  // The first part is kept back until more follows, or is announced: it might be the only one.
  const bool has_parts = parts_started_ > 0 || options_.size_hint > part_bytes_;
  while (pending_bytes_ > part_bytes_ || (has_parts && pending_bytes_ == part_bytes_)) {
    MR_RETURN_IF_ERROR(send_part(context, take_pending(part_bytes_)));
  }
  return {};
}

Slice S3Upload::take_pending(std::uint64_t bytes) {
  pending_bytes_ -= bytes;
  if (!pending_.empty() && pending_.front().size() >= bytes) {
    // One piece covers the part: nothing is copied.
    Slice whole = pending_.front().part(0, bytes);
    pending_.front() = pending_.front().part(bytes);
    if (pending_.front().empty()) pending_.pop_front();
    return whole;
  }
  Buffer joined = Buffer::allocate(bytes);
  std::size_t filled = 0;
  while (filled < bytes) {
    const Slice piece = pending_.front().part(0, bytes - filled);
    std::memcpy(joined.data() + filled, piece.data(), piece.size());
    filled += piece.size();
    pending_.front() = pending_.front().part(piece.size());
    if (pending_.front().empty()) pending_.pop_front();
  }
  return std::move(joined).freeze();
}

Status S3Upload::send_part(const RequestContext& context, Slice body) {
  const bool checksums = store_.client_.options().checksums;
  if (!multipart_.created()) {
    const Result<void> created = retry_call(
        *store_.part_retries_, context, [&](const RequestContext& attempt) -> Result<void> {
          MR_RETURN_IF_ERROR(multipart_.create(attempt, checksums));
          return {};
        });
    if (!created) return created.error();
  }
  if (parts_started_ == kPartsMax) {
    return {StatusCode::kInvalidArgument,
            fmt::format("{} is larger than {} parts of {}; announce its size when starting the "
                        "upload so that larger parts are used",
                        store_.client_.url_of(key_.value()), kPartsMax, format_size(part_bytes_))};
  }
  MR_ASSIGN_OR_RETURN(Limiter::Reservation slot, in_flight_.reserve(context, 1));
  const int number = ++parts_started_;
  {
    MutexLock lock(mutex_);
    if (!failure_.ok()) return failure_;
    parts_.resize(static_cast<std::size_t>(number));
    ++parts_running_;
  }
  store_.part_threads().resume(
      [this, context, number, body = std::move(body), slot = std::move(slot)]() mutable {
        deliver_part(context, number, std::move(body));
        slot = {};
        MutexLock lock(mutex_);
        --parts_running_;
        part_done_.notify_all();
      });
  return {};
}

void S3Upload::deliver_part(const RequestContext& context, int number, Slice body) {
  // The part ends with its caller's request, or with the upload.
  const auto forwarding =
      context.cancellation().subscribe([upload = parts_cancelled_] { upload->request(); });
  const RequestContext own = context.with_cancellation(parts_cancelled_);
  Result<UploadedPart> part =
      retry_call(*store_.part_retries_, own,
                 [&](const RequestContext& attempt) { return put_part(attempt, number, body); });
  context.cancellation().unsubscribe(forwarding);
  MutexLock lock(mutex_);
  if (part) {
    parts_[static_cast<std::size_t>(number) - 1] = std::move(*part);
  } else if (failure_.ok()) {
    failure_ = part.error().with_context(fmt::format("part {}", number));
  }
}

Result<UploadedPart> S3Upload::put_part(const RequestContext& context, int number,
                                        const Slice& body) {
  UploadedPart part;
  part.number = number;
  S3Request request = multipart_.part_request(number);
  request.body = body;
  const std::string crc = encode_crc32c(crc32c(body.bytes()));
  if (store_.client_.options().checksums) {
    part.crc32c = crc;
    request.headers.push_back({"x-amz-sdk-checksum-algorithm", "CRC32C"});
    request.headers.push_back({"x-amz-checksum-crc32c", crc});
  }
  MR_ASSIGN_OR_RETURN(const HttpResponse response,
                      store_.client_.perform(context, std::move(request)));
  const std::string_view echoed = response.headers.get("x-amz-checksum-crc32c");
  if (!echoed.empty() && echoed != crc) {
    return failure(StatusCode::kCorruption, "the store received other bytes than were sent");
  }
  part.etag = response.headers.get("etag");
  if (part.etag.empty()) return failure(StatusCode::kInternal, "the store gave no ETag");
  return part;
}

Status S3Upload::wait_for_parts() {
  MutexLock lock(mutex_);
  while (parts_running_ > 0)
    part_done_.wait(mutex_);
  return failure_;
}

Result<ObjectInfo> S3Upload::finish(const RequestContext& context) {
  if (ended_) return failure(StatusCode::kInvalidArgument, "the upload has ended");
  Result<ObjectInfo> result = multipart_.created() ? finish_parts(context) : finish_small(context);
  if (result) ended_ = true;
  return result;
}

Result<ObjectInfo> S3Upload::finish_small(const RequestContext& context) {
  const Slice body = take_pending(pending_bytes_);
  PutOptions options = options_;
  options.metadata.emplace(kUploadTokenMetadata, token_);
  return retry_call(*store_.part_retries_, context,
                    [&](const RequestContext& attempt) -> Result<ObjectInfo> {
                      Result<ObjectInfo> info = store_.put(attempt, key_, body, options);
                      if (info) {
                        info->metadata = options_.metadata;
                      } else if (info.error() == StatusCode::kPreconditionFailed) {
                        // Perhaps an earlier try of ours is what stands in the way.
                        Result<ObjectInfo> own =
                            find_own_object(store_.client_, attempt, key_, token_, body.size());
                        if (own) return own;
                      }
                      return info;
                    });
}

Result<ObjectInfo> S3Upload::finish_parts(const RequestContext& context) {
  if (pending_bytes_ > 0) MR_RETURN_IF_ERROR(send_part(context, take_pending(pending_bytes_)));
  MR_RETURN_IF_ERROR(wait_for_parts());
  std::vector<UploadedPart> parts;
  {
    MutexLock lock(mutex_);
    parts = parts_;
  }
  return retry_call(*store_.part_retries_, context, [&](const RequestContext& attempt) {
    return multipart_.complete(attempt, parts, total_bytes_);
  });
}

Status S3Upload::abort(const RequestContext& context) {
  ended_ = true;
  {
    MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = Status(StatusCode::kCancelled, "the upload was aborted");
  }
  parts_cancelled_->request();
  (void)wait_for_parts();
  pending_.clear();
  const Result<void> aborted = retry_call(*store_.part_retries_, context,
                                          [&](const RequestContext& attempt) -> Result<void> {
                                            MR_RETURN_IF_ERROR(multipart_.abort(attempt));
                                            return {};
                                          });
  return aborted ? Status() : aborted.error();
}

}  // namespace millrace::s3
