#pragma once

#include <atomic>
#include <memory>

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "objectstore/fault_plan.h"
#include "objectstore/object_store.h"

namespace millrace {

// Breaks calls to the store below as a plan says: the test double of a bad day. Keeps the
// interface's promises otherwise: every call is answered once, by its deadline. Safe from any
// thread. Clock, and the executor that runs the delays of reads, must outlive it and its answers.
class FaultyObjectStore final : public ObjectStore {
 public:
  FaultyObjectStore(std::shared_ptr<ObjectStore> inner, FaultPlan plan, Clock& clock,
                    Executor& executor);

  // From the next call on.
  void set_plan(FaultPlan plan);
  // How many calls there were; uploads count each of their own.
  std::uint64_t calls() const { return calls_.load(); }

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
  friend class FaultyUpload;
  std::optional<Fault> draw(const RequestContext& context, StoreOperation operation,
                            const std::string& key);
  // Runs a blocking call under the plan. `call` returns Result<T>.
  template <class Call>
  auto run(const RequestContext& context, StoreOperation operation, const std::string& key,
           Call&& call) -> decltype(call());
  Status run_status(const RequestContext& context, StoreOperation operation, const std::string& key,
                    std::move_only_function<Status()> call);

  const std::shared_ptr<ObjectStore> inner_;
  Clock& clock_;
  Executor& executor_;
  std::atomic<std::uint64_t> calls_{0};

  Mutex mutex_;
  FaultPlan plan_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
