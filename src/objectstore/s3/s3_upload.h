#pragma once

#include <deque>
#include <vector>

#include "base/limiter.h"
#include "base/mutex.h"
#include "objectstore/s3/multipart_upload.h"
#include "objectstore/s3/s3_object_store.h"

namespace millrace::s3 {

// Collects bytes into parts and sends several at once, each with its own retries. An object that
// turns out to fit one part is a plain PUT.
//
// Invariants:
//  1. pending_ holds less than one part between calls, but for the first, which may be the only
//     one: it is held back until more is written or was announced.
//  2. Parts are numbered in the order of their bytes; parts_[n - 1] is part n, filled when it
//  arrives.
//  3. After the first failure nothing more is sent.
class S3Upload final : public Upload {
 public:
  S3Upload(S3ObjectStore& store, ObjectKey key, PutOptions options);
  ~S3Upload() override;

  Status write(const RequestContext& context, Slice data) override;
  Result<ObjectInfo> finish(const RequestContext& context) override;
  Status abort(const RequestContext& context) override;

 private:
  Slice take_pending(std::uint64_t bytes);
  Status send_part(const RequestContext& context, Slice body);
  void deliver_part(const RequestContext& context, int number, Slice body);
  Result<UploadedPart> put_part(const RequestContext& context, int number, const Slice& body);
  Result<ObjectInfo> finish_small(const RequestContext& context);
  Result<ObjectInfo> finish_parts(const RequestContext& context);
  Status wait_for_parts();

  // Constant after construction.
  S3ObjectStore& store_;
  const ObjectKey key_;
  const PutOptions options_;
  const std::string token_;
  const std::uint64_t part_bytes_;

  // Touched by the caller's thread only.
  MultipartUpload multipart_;
  std::deque<Slice> pending_;
  std::uint64_t pending_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
  int parts_started_ = 0;
  bool ended_ = false;

  // Synchronise themselves.
  Limiter in_flight_;
  const std::shared_ptr<Cancellation> parts_cancelled_ = std::make_shared<Cancellation>();

  Mutex mutex_;
  CondVar part_done_;
  int parts_running_ MR_GUARDED_BY(mutex_) = 0;
  std::vector<UploadedPart> parts_ MR_GUARDED_BY(mutex_);
  Status failure_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace::s3
