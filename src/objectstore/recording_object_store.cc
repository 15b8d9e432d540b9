#include "objectstore/recording_object_store.h"

#include <numeric>
#include <utility>

namespace millrace {

struct RecordingObjectStore::Record {
  explicit Record(std::size_t max) : requests_max(max) {}

  // Returns the number to answer with.
  std::uint64_t ask(const RequestContext& context, StoreOperation operation, std::string key,
                    std::optional<ByteRange> range = {}) {
    MutexLock lock(mutex);
    ++counts[static_cast<std::size_t>(operation)];
    requests.push_back({operation, std::move(key), range, context.attempt(), {}});
    if (requests.size() > requests_max) {
      requests.pop_front();
      ++first;
    }
    return first + requests.size() - 1;
  }

  void answer(std::uint64_t number, StatusCode outcome) {
    MutexLock lock(mutex);
    // It may have been forgotten meanwhile.
    if (number >= first && number - first < requests.size()) {
      requests[number - first].outcome = outcome;
    }
  }

  template <class T>
  Result<T> answer(std::uint64_t number, Result<T> result) {
    answer(number, result ? StatusCode::kOk : result.error().code());
    return result;
  }
  Status answer(std::uint64_t number, Status status) {
    answer(number, status.code());
    return status;
  }

  const std::size_t requests_max;
  mutable Mutex mutex;
  std::deque<RecordedRequest> requests MR_GUARDED_BY(mutex);
  std::uint64_t first MR_GUARDED_BY(mutex) = 0;  // The number of requests.front().
  std::array<std::uint64_t, kStoreOperationCount> counts MR_GUARDED_BY(mutex){};
};

class RecordedUpload final : public Upload {
 public:
  RecordedUpload(std::unique_ptr<Upload> inner,
                 std::shared_ptr<RecordingObjectStore::Record> record, std::string key)
      : inner_(std::move(inner)), record_(std::move(record)), key_(std::move(key)) {}

  Status write(const RequestContext& context, Slice data) override {
    const auto number = record_->ask(context, StoreOperation::kUploadWrite, key_);
    return record_->answer(number, inner_->write(context, std::move(data)));
  }
  Result<ObjectInfo> finish(const RequestContext& context) override {
    const auto number = record_->ask(context, StoreOperation::kUploadFinish, key_);
    return record_->answer(number, inner_->finish(context));
  }
  Status abort(const RequestContext& context) override {
    const auto number = record_->ask(context, StoreOperation::kUploadAbort, key_);
    return record_->answer(number, inner_->abort(context));
  }

 private:
  const std::unique_ptr<Upload> inner_;
  const std::shared_ptr<RecordingObjectStore::Record> record_;
  const std::string key_;
};

RecordingObjectStore::RecordingObjectStore(std::shared_ptr<ObjectStore> inner,
                                           std::size_t requests_max)
    : inner_(std::move(inner)), record_(std::make_shared<Record>(requests_max)) {}

void RecordingObjectStore::get_range(const RequestContext& context, GetRequest request,
                                     Completion<GetResult> done) {
  const auto number =
      record_->ask(context, StoreOperation::kGetRange, request.key.value(), request.range);
  inner_->get_range(
      context, std::move(request),
      Completion<GetResult>(inline_executor(), [record = record_, number, done = std::move(done)](
                                                   Result<GetResult> result) mutable {
        done.complete(record->answer(number, std::move(result)));
      }));
}

Result<ObjectInfo> RecordingObjectStore::head(const RequestContext& context, const ObjectKey& key) {
  const auto number = record_->ask(context, StoreOperation::kHead, key.value());
  return record_->answer(number, inner_->head(context, key));
}

Result<ListPage> RecordingObjectStore::list(const RequestContext& context,
                                            const ListRequest& request) {
  const auto number = record_->ask(context, StoreOperation::kList, request.prefix);
  return record_->answer(number, inner_->list(context, request));
}

Result<ObjectInfo> RecordingObjectStore::put(const RequestContext& context, const ObjectKey& key,
                                             Slice data, const PutOptions& options) {
  const auto number = record_->ask(context, StoreOperation::kPut, key.value());
  return record_->answer(number, inner_->put(context, key, std::move(data), options));
}

Result<std::unique_ptr<Upload>> RecordingObjectStore::start_upload(const RequestContext& context,
                                                                   const ObjectKey& key,
                                                                   const PutOptions& options) {
  const auto number = record_->ask(context, StoreOperation::kStartUpload, key.value());
  MR_ASSIGN_OR_RETURN(auto upload,
                      record_->answer(number, inner_->start_upload(context, key, options)));
  return std::make_unique<RecordedUpload>(std::move(upload), record_, key.value());
}

Result<ObjectInfo> RecordingObjectStore::copy(const RequestContext& context,
                                              const ObjectInfo& source, const ObjectKey& target) {
  const auto number = record_->ask(context, StoreOperation::kCopy, target.value());
  return record_->answer(number, inner_->copy(context, source, target));
}

Status RecordingObjectStore::remove(const RequestContext& context,
                                    std::span<const ObjectKey> keys) {
  const auto number =
      record_->ask(context, StoreOperation::kRemove, keys.empty() ? "" : keys.front().value());
  return record_->answer(number, inner_->remove(context, keys));
}

std::vector<RecordedRequest> RecordingObjectStore::requests() const {
  MutexLock lock(record_->mutex);
  return {record_->requests.begin(), record_->requests.end()};
}

std::uint64_t RecordingObjectStore::count(StoreOperation operation) const {
  MutexLock lock(record_->mutex);
  return record_->counts[static_cast<std::size_t>(operation)];
}

std::uint64_t RecordingObjectStore::count() const {
  MutexLock lock(record_->mutex);
  return std::accumulate(record_->counts.begin(), record_->counts.end(), std::uint64_t{0});
}

void RecordingObjectStore::clear() {
  MutexLock lock(record_->mutex);
  record_->first += record_->requests.size();
  record_->requests.clear();
  record_->counts = {};
}

}  // namespace millrace
