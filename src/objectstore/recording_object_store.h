#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "objectstore/object_store.h"
#include "objectstore/store_operation.h"

namespace millrace {

struct RecordedRequest {
  StoreOperation operation = StoreOperation::kGetRange;
  // The key, the prefix of a list, the target of a copy, the first key of a remove.
  std::string key = {};
  std::optional<ByteRange> range = {};
  std::uint32_t attempt = 0;
  // Nothing while the answer is out.
  std::optional<StatusCode> outcome = {};
};

// Remembers what was asked of the store below, in the order of asking: for tests that assert how
// many requests a thing takes, and for traces. Keeps the last `requests_max` requests; the counts
// go on. Safe from any thread.
class RecordingObjectStore final : public ObjectStore {
 public:
  explicit RecordingObjectStore(std::shared_ptr<ObjectStore> inner,
                                std::size_t requests_max = 10'000);

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
  std::string describe() const override { return inner_->describe(); }

  std::vector<RecordedRequest> requests() const;
  std::uint64_t count(StoreOperation operation) const;
  // Over all operations.
  std::uint64_t count() const;
  // Forgets requests and counts.
  void clear();

 private:
  friend class RecordedUpload;
  // Shared with answers that are out, which may come after the store is gone.
  struct Record;

  const std::shared_ptr<ObjectStore> inner_;
  const std::shared_ptr<Record> record_;
};

}  // namespace millrace
