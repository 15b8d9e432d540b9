#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "objectstore/object_store.h"

namespace millrace {

struct MemoryObjectStoreOptions {
  std::string name = "memory";
  // Every call takes this long by the clock.
  Duration latency{0};

  // What stores in the field get wrong, so that the capability probe can be shown each.
  bool ignore_conditions = false;         // Conditions on put are not looked at: overwrites.
  bool refuse_conditions = false;         // kUnsupported for any condition.
  bool ignore_upload_conditions = false;  // Conditions hold for put but not for an upload.
  bool ignore_identity_conditions = false;
  bool drop_metadata = false;
  bool refuse_copy = false;
  bool hide_new_keys_from_list = false;
};

// A complete store in memory, the definition of what the interface means. For tests, simulation and
// `memory://`. Contents go with the object.
//
// Identity is the content's checksum and a counter, so that the same bytes written twice are told
// apart. get_range answers through the completion's executor at once, or after the latency through
// `executor`. All methods are safe from any thread; clock and executor must outlive the store and
// its calls.
class MemoryObjectStore final : public ObjectStore {
 public:
  explicit MemoryObjectStore(Clock& clock = system_clock(), Executor& executor = inline_executor(),
                             MemoryObjectStoreOptions options = {});
  ~MemoryObjectStore() override;

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

  // For tests: how many objects there are, and how many uploads are neither finished nor aborted.
  std::size_t object_count() const;
  std::size_t open_uploads() const { return open_uploads_.load(); }

 private:
  friend class MemoryUpload;
  struct Object {
    Slice data;
    ObjectInfo info;
  };
  using Objects = std::map<std::string, Object>;

  // Waits for the latency; kDeadlineExceeded or kCancelled when the context ends first.
  Status begin(const RequestContext& context);
  Result<GetResult> read(const GetRequest& request) const;
  Result<ObjectInfo> store(const ObjectKey& key, Slice data, ObjectMetadata metadata,
                           const WriteCondition& condition);
  Status check_condition(const ObjectKey& key, const WriteCondition& condition) const
      MR_REQUIRES(mutex_);
  Status not_found(const ObjectKey& key) const;

  Clock& clock_;
  Executor& executor_;
  const MemoryObjectStoreOptions options_;
  std::atomic<std::size_t> open_uploads_{0};

  mutable Mutex mutex_;
  Objects objects_ MR_GUARDED_BY(mutex_);
  std::uint64_t writes_ MR_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
