#pragma once

#include <memory>

#include "base/executor.h"
#include "objectstore/object_store.h"
#include "objectstore/retry_control.h"

namespace millrace {

// Makes several attempts where the store below makes one, within the context's deadline and the
// store's common budget (see RetryPolicy), and hedges slow reads. Attempts after the first carry
// their number in the context, so that the store below sends them on a new connection.
//
// kUnavailable, kThrottled and kCorruption are retried; when it gives up, the last of them is
// returned with a message that says how often and for how long it tried. Conditional puts are
// settled by a token in their metadata (retry_write_token.h). An upload's start is retried here;
// its parts and its finish belong to the store below, which shares the control for them.
//
// All methods are safe from any thread. Reads under way own what they need and may outlive the
// store; `executor`, which runs timers, and what the control refers to must outlive them.
class RetryingObjectStore final : public ObjectStore {
 public:
  RetryingObjectStore(std::shared_ptr<ObjectStore> inner, std::shared_ptr<RetryControl> control,
                      Executor& executor);

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
  // That of the store below: retries are not a place.
  std::string describe() const override { return inner_->describe(); }

 private:
  const std::shared_ptr<ObjectStore> inner_;
  const std::shared_ptr<RetryControl> control_;
  Executor& executor_;
};

}  // namespace millrace
