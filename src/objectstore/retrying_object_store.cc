#include "objectstore/retrying_object_store.h"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "objectstore/hedging_get.h"
#include "objectstore/retry_loop.h"
#include "objectstore/retry_write_token.h"

namespace millrace {

namespace {

// The token's name is ours; with it, the user's metadata must still be within the limit.
Status validate_options(const PutOptions& options) {
  if (options.metadata.contains(std::string(kWriteTokenName))) {
    return {StatusCode::kInvalidArgument,
            fmt::format("the metadata name '{}' is reserved", kWriteTokenName)};
  }
  return validate_metadata(options.metadata);
}

}  // namespace

RetryingObjectStore::RetryingObjectStore(std::shared_ptr<ObjectStore> inner,
                                         std::shared_ptr<RetryControl> control, Executor& executor)
    : inner_(std::move(inner)), control_(std::move(control)), executor_(executor) {}

void RetryingObjectStore::get_range(const RequestContext& context, GetRequest request,
                                    Completion<GetResult> done) {
  start_hedging_get(inner_, control_, executor_, context, std::move(request), std::move(done));
}

Result<ObjectInfo> RetryingObjectStore::head(const RequestContext& context, const ObjectKey& key) {
  auto info = retry_call(*control_, context,
                         [&](const RequestContext& attempt) { return inner_->head(attempt, key); });
  if (info) info->metadata.erase(std::string(kWriteTokenName));
  return info;
}

Result<ListPage> RetryingObjectStore::list(const RequestContext& context,
                                           const ListRequest& request) {
  return retry_call(*control_, context,
                    [&](const RequestContext& attempt) { return inner_->list(attempt, request); });
}

Result<ObjectInfo> RetryingObjectStore::put(const RequestContext& context, const ObjectKey& key,
                                            Slice data, const PutOptions& options) {
  MR_RETURN_IF_ERROR(validate_options(options));
  if (options.condition.kind != WriteCondition::Kind::kNone) {
    return put_with_token(*inner_, *control_, context, key, std::move(data), options);
  }
  return retry_call(*control_, context, [&](const RequestContext& attempt) {
    return inner_->put(attempt, key, data, options);
  });
}

Result<std::unique_ptr<Upload>> RetryingObjectStore::start_upload(const RequestContext& context,
                                                                  const ObjectKey& key,
                                                                  const PutOptions& options) {
  MR_RETURN_IF_ERROR(validate_options(options));
  return retry_call(*control_, context, [&](const RequestContext& attempt) {
    return inner_->start_upload(attempt, key, options);
  });
}

Result<ObjectInfo> RetryingObjectStore::copy(const RequestContext& context,
                                             const ObjectInfo& source, const ObjectKey& target) {
  return retry_call(*control_, context, [&](const RequestContext& attempt) {
    return inner_->copy(attempt, source, target);
  });
}

Status RetryingObjectStore::remove(const RequestContext& context, std::span<const ObjectKey> keys) {
  const auto removed =
      retry_call(*control_, context, [&](const RequestContext& attempt) -> Result<std::monostate> {
        MR_RETURN_IF_ERROR(inner_->remove(attempt, keys));
        return std::monostate{};
      });
  return removed ? Status() : removed.error();
}

}  // namespace millrace
