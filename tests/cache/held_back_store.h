#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "objectstore/object_store.h"

namespace millrace {

// A store whose answers wait until a test gives them. A call that is cancelled is answered at once.
// Safe from any thread. Only get_range works.
class HeldBackStore final : public ObjectStore {
 public:
  struct Call {
    RequestContext context;
    GetRequest request;
    Completion<GetResult> done;
    Cancellation::CallbackId subscription = 0;

    std::uint64_t bytes() const { return request.range->length; }
  };

  void get_range(const RequestContext& context, GetRequest request,
                 Completion<GetResult> done) override {
    auto call = std::make_shared<Call>(context, std::move(request), std::move(done));
    {
      MutexLock lock(mutex_);
      waiting_.push_back(call);
      ++calls_;
    }
    call->subscription = context.cancellation().subscribe([this, weak = std::weak_ptr(call)] {
      if (const auto called_off = weak.lock(); called_off && take(*called_off)) {
        called_off->done.complete(failure(StatusCode::kCancelled, "called off"));
      }
    });
  }

  // How many calls wait for an answer.
  std::size_t waiting() const {
    MutexLock lock(mutex_);
    return waiting_.size();
  }
  std::size_t calls() const {
    MutexLock lock(mutex_);
    return calls_;
  }
  std::string key(std::size_t index) const {
    MutexLock lock(mutex_);
    return waiting_.at(index)->request.key.value();
  }
  RequestContext context(std::size_t index) const {
    MutexLock lock(mutex_);
    return waiting_.at(index)->context;
  }

  // Answer the call at this place among those that wait: as asked for, with so many bytes, or with
  // a failure.
  void answer(std::size_t index) { answer(index, SIZE_MAX); }
  void answer(std::size_t index, std::size_t bytes) {
    const std::shared_ptr<Call> call = take_at(index);
    const std::size_t size = bytes == SIZE_MAX ? call->bytes() : bytes;
    call->done.complete(GetResult{Slice::from_string(std::string(size, 'x')),
                                  ObjectInfo{.key = call->request.key}});
  }
  void fail(std::size_t index, StatusCode code) {
    take_at(index)->done.complete(failure(code, "the test says so"));
  }

  std::string describe() const override { return "held-back"; }
  Result<ObjectInfo> head(const RequestContext&, const ObjectKey&) override { return refuse(); }
  Result<ListPage> list(const RequestContext&, const ListRequest&) override { return refuse(); }
  Result<ObjectInfo> put(const RequestContext&, const ObjectKey&, Slice,
                         const PutOptions&) override {
    return refuse();
  }
  Result<std::unique_ptr<Upload>> start_upload(const RequestContext&, const ObjectKey&,
                                               const PutOptions&) override {
    return refuse();
  }
  Result<ObjectInfo> copy(const RequestContext&, const ObjectInfo&, const ObjectKey&) override {
    return refuse();
  }
  Status remove(const RequestContext&, std::span<const ObjectKey>) override {
    return refuse().error();
  }

 private:
  static std::unexpected<Status> refuse() {
    return failure(StatusCode::kUnsupported, "only get_range works here");
  }
  // False when somebody else has it.
  bool take(const Call& call) {
    MutexLock lock(mutex_);
    return std::erase_if(waiting_, [&](const auto& other) { return other.get() == &call; }) > 0;
  }
  std::shared_ptr<Call> take_at(std::size_t index) {
    std::shared_ptr<Call> call;
    {
      MutexLock lock(mutex_);
      call = waiting_.at(index);
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    if (call->subscription != 0) call->context.cancellation().unsubscribe(call->subscription);
    return call;
  }

  mutable Mutex mutex_;
  std::deque<std::shared_ptr<Call>> waiting_ MR_GUARDED_BY(mutex_);
  std::size_t calls_ MR_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
