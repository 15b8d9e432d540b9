#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "objectstore/object_store.h"

namespace millrace {

// Runs blocking code of several participants as one interleaving that a seed decides: each has a
// thread, only one runs at a time, and pass() is where the next may be another.
class Turns {
 public:
  explicit Turns(std::uint64_t seed) : random_(seed) {}

  // Returns when all have returned.
  void run(std::vector<std::function<void()>> participants) {
    {
      MutexLock lock(mutex_);
      for (std::size_t i = 0; i < participants.size(); ++i)
        waiting_.push_back(i);
      next_turn();
    }
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < participants.size(); ++i) {
      threads.emplace_back([this, i, body = std::move(participants[i])] {
        self_ = i;
        {
          MutexLock lock(mutex_);
          await(i);
        }
        body();
        MutexLock lock(mutex_);
        std::erase(waiting_, i);
        next_turn();
      });
    }
    for (std::thread& thread : threads)
      thread.join();
  }

  // Called by whoever has the turn.
  void pass() {
    const std::size_t self = self_;
    MutexLock lock(mutex_);
    next_turn();
    await(self);
  }

 private:
  void next_turn() MR_REQUIRES(mutex_) {
    if (!waiting_.empty()) current_ = waiting_[random_() % waiting_.size()];
    changed_.notify_all();
  }
  void await(std::size_t self) MR_REQUIRES(mutex_) {
    while (current_ != self)
      changed_.wait(mutex_);
  }

  static inline thread_local std::size_t self_ = 0;
  Mutex mutex_;
  CondVar changed_;
  std::mt19937_64 random_ MR_GUARDED_BY(mutex_);
  std::vector<std::size_t> waiting_ MR_GUARDED_BY(mutex_);
  std::size_t current_ MR_GUARDED_BY(mutex_) = SIZE_MAX;
};

// Calls `before` ahead of every request to the store below. Uploads and copies are not needed here.
class InterruptedObjectStore final : public ObjectStore {
 public:
  InterruptedObjectStore(std::shared_ptr<ObjectStore> inner, std::function<void()> before)
      : inner_(std::move(inner)), before_(std::move(before)) {}

  void get_range(const RequestContext& context, GetRequest request,
                 Completion<GetResult> done) override {
    before_();
    inner_->get_range(context, std::move(request), std::move(done));
  }
  Result<ObjectInfo> head(const RequestContext& context, const ObjectKey& key) override {
    before_();
    return inner_->head(context, key);
  }
  Result<ListPage> list(const RequestContext& context, const ListRequest& request) override {
    before_();
    return inner_->list(context, request);
  }
  Result<ObjectInfo> put(const RequestContext& context, const ObjectKey& key, Slice data,
                         const PutOptions& options) override {
    before_();
    return inner_->put(context, key, std::move(data), options);
  }
  Result<std::unique_ptr<Upload>> start_upload(const RequestContext& context, const ObjectKey& key,
                                               const PutOptions& options) override {
    return inner_->start_upload(context, key, options);
  }
  Result<ObjectInfo> copy(const RequestContext& context, const ObjectInfo& source,
                          const ObjectKey& target) override {
    return inner_->copy(context, source, target);
  }
  Status remove(const RequestContext& context, std::span<const ObjectKey> keys) override {
    return inner_->remove(context, keys);
  }
  std::string describe() const override { return inner_->describe(); }

 private:
  const std::shared_ptr<ObjectStore> inner_;
  const std::function<void()> before_;
};

}  // namespace millrace
