#pragma once

#include <memory>

#include "base/clock.h"
#include "metrics/metrics.h"
#include "objectstore/object_store.h"
#include "objectstore/store_operation.h"

namespace millrace {

// Counts what passes to the store below: outcomes, bytes, latency, requests in flight. Belongs
// directly above a back end, so that retries and hedges are counted one by one. Clock and metrics
// must outlive it and its answers. Safe from any thread.
class MeteredObjectStore final : public ObjectStore {
 public:
  MeteredObjectStore(std::shared_ptr<ObjectStore> inner, Metrics& metrics, Clock& clock);

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

 private:
  const std::shared_ptr<ObjectStore> inner_;
  Metrics& metrics_;
  Clock& clock_;
};

}  // namespace millrace
