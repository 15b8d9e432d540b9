#include "objectstore/faulty_object_store.h"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "objectstore/paused_call.h"

namespace millrace {

namespace {

Status status_of(const Fault& fault, StoreOperation operation) {
  const auto name = store_operation_name(operation);
  if (fault.kind == Fault::Kind::kThrottle) {
    const Status status(StatusCode::kThrottled, fmt::format("injected: {} must slow down", name));
    return fault.retry_after ? status.with_retry_after(*fault.retry_after) : status;
  }
  return {fault.code, fmt::format("injected: {} failed", name)};
}

// Copies, because the store below may share the bytes with others.
Slice flip_one_bit(const Slice& data) {
  if (data.empty()) return data;
  std::string bytes(data.text());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
  return Slice::from_string(std::move(bytes));
}

// Replaces the answer of a read that was carried out.
Completion<GetResult> spoil(const Fault& fault, Completion<GetResult> done) {
  return {inline_executor(), [fault, done = std::move(done)](Result<GetResult> result) mutable {
            if (fault.kind == Fault::Kind::kFailAfter) {
              done.complete(failure(status_of(fault, StoreOperation::kGetRange)));
              return;
            }
            if (result) result->data = flip_one_bit(result->data);
            done.complete(std::move(result));
          }};
}

}  // namespace

class FaultyUpload final : public Upload {
 public:
  FaultyUpload(std::unique_ptr<Upload> inner, FaultyObjectStore& store, std::string key)
      : inner_(std::move(inner)), store_(store), key_(std::move(key)) {}

  Status write(const RequestContext& context, Slice data) override {
    return store_.run_status(context, StoreOperation::kUploadWrite, key_,
                             [&] { return inner_->write(context, std::move(data)); });
  }
  Result<ObjectInfo> finish(const RequestContext& context) override {
    return store_.run(context, StoreOperation::kUploadFinish, key_,
                      [&] { return inner_->finish(context); });
  }
  Status abort(const RequestContext& context) override {
    return store_.run_status(context, StoreOperation::kUploadAbort, key_,
                             [&] { return inner_->abort(context); });
  }

 private:
  const std::unique_ptr<Upload> inner_;
  FaultyObjectStore& store_;
  const std::string key_;
};

FaultyObjectStore::FaultyObjectStore(std::shared_ptr<ObjectStore> inner, FaultPlan plan,
                                     Clock& clock, Executor& executor)
    : inner_(std::move(inner)), clock_(clock), executor_(executor), plan_(std::move(plan)) {}

void FaultyObjectStore::set_plan(FaultPlan plan) {
  MutexLock lock(mutex_);
  plan_ = std::move(plan);
}

std::optional<Fault> FaultyObjectStore::draw(const RequestContext& context,
                                             StoreOperation operation, const std::string& key) {
  const FaultableCall call{operation, key, context.attempt(), ++calls_};
  MutexLock lock(mutex_);
  const FaultPlan plan = plan_;
  lock.unlock();
  return plan(call);
}

template <class Call>
auto FaultyObjectStore::run(const RequestContext& context, StoreOperation operation,
                            const std::string& key, Call&& call) -> decltype(call()) {
  MR_RETURN_IF_ERROR(context.check(clock_));
  const std::optional<Fault> fault = draw(context, operation, key);
  if (!fault) return call();
  switch (fault->kind) {
    case Fault::Kind::kFailBefore:
    case Fault::Kind::kThrottle:
      return failure(status_of(*fault, operation));
    case Fault::Kind::kFailAfter:
      // Whatever became of it, the caller does not learn.
      static_cast<void>(call());
      return failure(status_of(*fault, operation));
    case Fault::Kind::kDelay:
      MR_RETURN_IF_ERROR(pause_thread(clock_, context, clock_.now() + fault->delay));
      return call();
    case Fault::Kind::kCorrupt:
      return call();
    case Fault::Kind::kHang:
      MR_RETURN_IF_ERROR(pause_thread(clock_, context, TimePoint::max()));
      break;
  }
  return failure(StatusCode::kInternal, "a hanging call came back without a reason");
}

Status FaultyObjectStore::run_status(const RequestContext& context, StoreOperation operation,
                                     const std::string& key,
                                     std::move_only_function<Status()> call) {
  const auto result = run(context, operation, key, [&]() -> Result<std::monostate> {
    MR_RETURN_IF_ERROR(call());
    return std::monostate{};
  });
  return result ? Status() : result.error();
}

void FaultyObjectStore::get_range(const RequestContext& context, GetRequest request,
                                  Completion<GetResult> done) {
  if (Status status = context.check(clock_); !status.ok()) {
    done.complete(failure(std::move(status)));
    return;
  }
  const auto fault = draw(context, StoreOperation::kGetRange, request.key.value());
  if (!fault) return inner_->get_range(context, std::move(request), std::move(done));
  switch (fault->kind) {
    case Fault::Kind::kFailBefore:
    case Fault::Kind::kThrottle:
      done.complete(failure(status_of(*fault, StoreOperation::kGetRange)));
      return;
    case Fault::Kind::kFailAfter:
    case Fault::Kind::kCorrupt:
      inner_->get_range(context, std::move(request), spoil(*fault, std::move(done)));
      return;
    case Fault::Kind::kDelay:
    case Fault::Kind::kHang:
      break;
  }
  const TimePoint when =
      fault->kind == Fault::Kind::kHang ? TimePoint::max() : clock_.now() + fault->delay;
  pause_call(clock_, executor_, context, when,
             [inner = inner_, context, request = std::move(request),
              done = std::move(done)](Status status) mutable {
               if (!status.ok()) return done.complete(failure(std::move(status)));
               inner->get_range(context, std::move(request), std::move(done));
             });
}

Result<ObjectInfo> FaultyObjectStore::head(const RequestContext& context, const ObjectKey& key) {
  return run(context, StoreOperation::kHead, key.value(),
             [&] { return inner_->head(context, key); });
}

Result<ListPage> FaultyObjectStore::list(const RequestContext& context,
                                         const ListRequest& request) {
  return run(context, StoreOperation::kList, request.prefix,
             [&] { return inner_->list(context, request); });
}

Result<ObjectInfo> FaultyObjectStore::put(const RequestContext& context, const ObjectKey& key,
                                          Slice data, const PutOptions& options) {
  return run(context, StoreOperation::kPut, key.value(),
             [&] { return inner_->put(context, key, std::move(data), options); });
}

Result<std::unique_ptr<Upload>> FaultyObjectStore::start_upload(const RequestContext& context,
                                                                const ObjectKey& key,
                                                                const PutOptions& options) {
  MR_ASSIGN_OR_RETURN(auto upload, run(context, StoreOperation::kStartUpload, key.value(), [&] {
                        return inner_->start_upload(context, key, options);
                      }));
  return std::make_unique<FaultyUpload>(std::move(upload), *this, key.value());
}

Result<ObjectInfo> FaultyObjectStore::copy(const RequestContext& context, const ObjectInfo& source,
                                           const ObjectKey& target) {
  return run(context, StoreOperation::kCopy, target.value(),
             [&] { return inner_->copy(context, source, target); });
}

Status FaultyObjectStore::remove(const RequestContext& context, std::span<const ObjectKey> keys) {
  return run_status(context, StoreOperation::kRemove, keys.empty() ? "" : keys.front().value(),
                    [&] { return inner_->remove(context, keys); });
}

}  // namespace millrace
