#include "objectstore/metered_object_store.h"

#include <utility>

namespace millrace {

namespace {

// One request from its start to its answer.
class Measurement {
 public:
  Measurement(Metrics& metrics, Clock& clock, StoreOperation operation)
      : metrics_(&metrics),
        clock_(&clock),
        operation_(static_cast<std::size_t>(operation)),
        started_(clock.now()) {
    metrics.gauge(MetricId::kStoreInFlight, {operation_}).add(1);
  }

  void answer(StatusCode outcome) const {
    metrics_->gauge(MetricId::kStoreInFlight, {operation_}).add(-1);
    metrics_->counter(MetricId::kStoreOperations, {operation_, static_cast<std::size_t>(outcome)})
        .add();
    metrics_->histogram(MetricId::kStoreLatency, {operation_}).observe(clock_->now() - started_);
  }
  template <class T>
  Result<T> answer(Result<T> result) const {
    answer(result ? StatusCode::kOk : result.error().code());
    return result;
  }
  Status answer(Status status) const {
    answer(status.code());
    return status;
  }

 private:
  Metrics* metrics_;
  Clock* clock_;
  std::size_t operation_;
  TimePoint started_;
};

void count_bytes(Metrics& metrics, MetricDirection direction, std::uint64_t bytes) {
  metrics.counter(MetricId::kStoreBytes, {static_cast<std::size_t>(direction)}).add(bytes);
}

class MeteredUpload final : public Upload {
 public:
  MeteredUpload(std::unique_ptr<Upload> inner, Metrics& metrics, Clock& clock)
      : inner_(std::move(inner)), metrics_(metrics), clock_(clock) {}

  Status write(const RequestContext& context, Slice data) override {
    const Measurement measurement(metrics_, clock_, StoreOperation::kUploadWrite);
    const std::uint64_t bytes = data.size();
    const Status status = measurement.answer(inner_->write(context, std::move(data)));
    if (status.ok()) count_bytes(metrics_, MetricDirection::kWritten, bytes);
    return status;
  }
  Result<ObjectInfo> finish(const RequestContext& context) override {
    const Measurement measurement(metrics_, clock_, StoreOperation::kUploadFinish);
    return measurement.answer(inner_->finish(context));
  }
  Status abort(const RequestContext& context) override {
    const Measurement measurement(metrics_, clock_, StoreOperation::kUploadAbort);
    return measurement.answer(inner_->abort(context));
  }

 private:
  const std::unique_ptr<Upload> inner_;
  Metrics& metrics_;
  Clock& clock_;
};

}  // namespace

MeteredObjectStore::MeteredObjectStore(std::shared_ptr<ObjectStore> inner, Metrics& metrics,
                                       Clock& clock)
    : inner_(std::move(inner)), metrics_(metrics), clock_(clock) {}

void MeteredObjectStore::get_range(const RequestContext& context, GetRequest request,
                                   Completion<GetResult> done) {
  const Measurement measurement(metrics_, clock_, StoreOperation::kGetRange);
  inner_->get_range(context, std::move(request),
                    Completion<GetResult>(inline_executor(), [measurement, &metrics = metrics_,
                                                              done = std::move(done)](
                                                                 Result<GetResult> result) mutable {
                      if (result) {
                        count_bytes(metrics, MetricDirection::kRead, result->data.size());
                        metrics.histogram(MetricId::kStoreReadBytes)
                            .observe(static_cast<double>(result->data.size()));
                      }
                      done.complete(measurement.answer(std::move(result)));
                    }));
}

Result<ObjectInfo> MeteredObjectStore::head(const RequestContext& context, const ObjectKey& key) {
  const Measurement measurement(metrics_, clock_, StoreOperation::kHead);
  return measurement.answer(inner_->head(context, key));
}

Result<ListPage> MeteredObjectStore::list(const RequestContext& context,
                                          const ListRequest& request) {
  const Measurement measurement(metrics_, clock_, StoreOperation::kList);
  return measurement.answer(inner_->list(context, request));
}

Result<ObjectInfo> MeteredObjectStore::put(const RequestContext& context, const ObjectKey& key,
                                           Slice data, const PutOptions& options) {
  const Measurement measurement(metrics_, clock_, StoreOperation::kPut);
  const std::uint64_t bytes = data.size();
  auto info = measurement.answer(inner_->put(context, key, std::move(data), options));
  if (info) count_bytes(metrics_, MetricDirection::kWritten, bytes);
  return info;
}

Result<std::unique_ptr<Upload>> MeteredObjectStore::start_upload(const RequestContext& context,
                                                                 const ObjectKey& key,
                                                                 const PutOptions& options) {
  const Measurement measurement(metrics_, clock_, StoreOperation::kStartUpload);
  MR_ASSIGN_OR_RETURN(auto upload, measurement.answer(inner_->start_upload(context, key, options)));
  return std::make_unique<MeteredUpload>(std::move(upload), metrics_, clock_);
}

Result<ObjectInfo> MeteredObjectStore::copy(const RequestContext& context, const ObjectInfo& source,
                                            const ObjectKey& target) {
  const Measurement measurement(metrics_, clock_, StoreOperation::kCopy);
  return measurement.answer(inner_->copy(context, source, target));
}

Status MeteredObjectStore::remove(const RequestContext& context, std::span<const ObjectKey> keys) {
  const Measurement measurement(metrics_, clock_, StoreOperation::kRemove);
  return measurement.answer(inner_->remove(context, keys));
}

}  // namespace millrace
