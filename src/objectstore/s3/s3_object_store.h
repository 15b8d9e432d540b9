#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "base/random.h"
#include "objectstore/object_store.h"
#include "objectstore/retry_control.h"
#include "objectstore/s3/s3_client.h"

namespace millrace::s3 {

// What an S3 store works with. All outlive it.
struct S3Environment {
  HttpClient& http;
  Clock& clock;
  Random& random;
  // Where the data of get_range is put; null: the heap.
  BufferPool* pool = nullptr;
};

// ObjectStore on AWS S3 and what speaks its protocol.
//
// One attempt per call, but for the parts of an upload: they are retried here, since only the
// upload knows them. Uploads of up to one part become a single PUT.
//
// Integrity: bodies are signed with their SHA-256 over plain HTTP, and carry a CRC32C that stores
// which know it verify. Objects that are put whole also keep it as metadata, so that a whole read
// is checked on any store.
class S3ObjectStore final : public ObjectStore {
 public:
  // Null credentials only together with options.anonymous. `part_retries` is shared with the
  // RetryingObjectStore above, so that one budget covers all.
  S3ObjectStore(S3Options options, std::shared_ptr<CachedCredentials> credentials,
                S3Environment environment, std::shared_ptr<RetryControl> part_retries);
  ~S3ObjectStore() override;

  void get_range(const RequestContext& context, GetRequest request,
                 Completion<GetResult> done) override;
  Result<ObjectInfo> head(const RequestContext& context, const ObjectKey& key) override;
  Result<ListPage> list(const RequestContext& context, const ListRequest& request) override;
  Result<ObjectInfo> put(const RequestContext& context, const ObjectKey& key, Slice data,
                         const PutOptions& options) override;
  Result<std::unique_ptr<Upload>> start_upload(const RequestContext& context, const ObjectKey& key,
                                               const PutOptions& options) override;
  Result<ObjectInfo> copy(const RequestContext& context, const ObjectInfo& source,
                          const ObjectKey& target) override;
  Status remove(const RequestContext& context, std::span<const ObjectKey> keys) override;
  std::string describe() const override;

  // The store's clock minus ours, once an answer has shown a difference worth correcting.
  Duration clock_skew() const { return client_.clock_skew(); }

 private:
  friend class S3Upload;

  Result<ObjectInfo> put_once(const RequestContext& context, const ObjectKey& key, Slice data,
                              const PutOptions& options);
  Status copy_whole(const RequestContext& context, const ObjectInfo& source,
                    const ObjectKey& target);
  Status copy_by_parts(const RequestContext& context, const ObjectInfo& source,
                       const ObjectKey& target);
  Status check_source(const RequestContext& context, const ObjectInfo& source);
  Status remove_one(const RequestContext& context, const ObjectKey& key);
  Status remove_batch(const RequestContext& context, std::span<const ObjectKey> keys);
  ThreadPool& part_threads();

  // Constant after construction, or synchronise themselves.
  S3Client client_;
  const S3Environment environment_;
  const std::shared_ptr<RetryControl> part_retries_;
  std::atomic<bool> batch_remove_works_{true};

  Mutex mutex_;
  // Started by the first large upload: most stores are only read.
  std::unique_ptr<ThreadPool> part_threads_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace::s3
