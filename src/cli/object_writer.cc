#include "cli/object_writer.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace millrace::cli {
namespace {

// AWS's advice: parts pay off from about here on.
constexpr std::uint64_t kPutBytesMax = 16 * kMiB;

}  // namespace

ObjectWriter::ObjectWriter(Session& session, const RequestContext& context, ObjectStore& store,
                           ObjectKey key, PutOptions options)
    : session_(session),
      context_(context),
      store_(store),
      key_(std::move(key)),
      options_(std::move(options)) {}

ObjectWriter::~ObjectWriter() {
  if (!upload_) return;
  // Also after a cancellation: parts that stay behind cost money every month. The deadline is the
  // only limit of this last request.
  const RequestContext last(session_.clock().now() + std::chrono::seconds(8), context_.principal());
  std::ignore = upload_->abort(last);
}

Status ObjectWriter::write(Slice data) {
  bytes_ += data.size();
  if (!upload_) {
    held_.push_back(std::move(data));
    if (bytes_ <= kPutBytesMax) return {};
    MR_ASSIGN_OR_RETURN(upload_, store_.start_upload(session_.request(context_), key_, options_));
    for (Slice& slice : held_) {
      MR_RETURN_IF_ERROR(upload_->write(session_.request(context_), std::move(slice)));
    }
    held_.clear();
    return {};
  }
  return upload_->write(session_.request(context_), std::move(data));
}

Slice ObjectWriter::joined() const {
  if (held_.empty()) return {};
  if (held_.size() == 1) return held_.front();
  Buffer whole = Buffer::allocate(bytes_);
  std::size_t at = 0;
  for (const Slice& slice : held_) {
    std::memcpy(whole.data() + at, slice.data(), slice.size());
    at += slice.size();
  }
  return std::move(whole).freeze();
}

Result<ObjectInfo> ObjectWriter::finish() {
  auto info = upload_ ? upload_->finish(session_.request(context_))
                      : store_.put(session_.request(context_), key_, joined(), options_);
  if (!info) return info;
  upload_.reset();
  if (info->size != bytes_) {
    return failure(StatusCode::kInternal,
                   fmt::format("'{}' has {} bytes in the store, but {} were sent", key_.value(),
                               info->size, bytes_));
  }
  return info;
}

}  // namespace millrace::cli
