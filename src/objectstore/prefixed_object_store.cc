#include "objectstore/prefixed_object_store.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace {

namespace {

// Gives the infos of an upload their keys above the prefix.
class PrefixedUpload final : public Upload {
 public:
  PrefixedUpload(std::unique_ptr<Upload> inner, ObjectKey key)
      : inner_(std::move(inner)), key_(std::move(key)) {}

  Status write(const RequestContext& context, Slice data) override {
    return inner_->write(context, std::move(data));
  }
  Result<ObjectInfo> finish(const RequestContext& context) override {
    auto info = inner_->finish(context);
    if (info) info->key = key_;
    return info;
  }
  Status abort(const RequestContext& context) override { return inner_->abort(context); }

 private:
  const std::unique_ptr<Upload> inner_;
  const ObjectKey key_;
};

}  // namespace

PrefixedObjectStore::PrefixedObjectStore(std::shared_ptr<ObjectStore> inner,
                                         const std::string& prefix)
    : inner_(std::move(inner)), root_(prefix + "/") {
  assert(!prefix.empty() && !prefix.ends_with('/'));
}

Result<ObjectInfo> PrefixedObjectStore::above(Result<ObjectInfo> info) const {
  if (!info) return info;
  if (!info->key.value().starts_with(root_)) {
    return failure(StatusCode::kInternal,
                   fmt::format("{} answered for '{}', which is not under '{}'", inner_->describe(),
                               info->key.value(), root_));
  }
  info->key = ObjectKey(info->key.value().substr(root_.size()));
  return info;
}

void PrefixedObjectStore::get_range(const RequestContext& context, GetRequest request,
                                    Completion<GetResult> done) {
  if (Status status = validate_key(request.key); !status.ok()) {
    done.complete(failure(std::move(status)));
    return;
  }
  ObjectKey key = std::move(request.key);
  request.key = below(key);
  inner_->get_range(
      context, std::move(request),
      Completion<GetResult>(inline_executor(), [key = std::move(key), done = std::move(done)](
                                                   Result<GetResult> result) mutable {
        if (result) result->info.key = std::move(key);
        done.complete(std::move(result));
      }));
}

Result<ObjectInfo> PrefixedObjectStore::head(const RequestContext& context, const ObjectKey& key) {
  MR_RETURN_IF_ERROR(validate_key(key));
  return above(inner_->head(context, below(key)));
}

Result<ListPage> PrefixedObjectStore::list(const RequestContext& context,
                                           const ListRequest& request) {
  ListRequest rooted = request;
  rooted.prefix = root_ + request.prefix;
  if (!request.start_after.empty()) rooted.start_after = root_ + request.start_after;
  MR_ASSIGN_OR_RETURN(ListPage page, inner_->list(context, rooted));
  for (ObjectInfo& object : page.objects) {
    MR_ASSIGN_OR_RETURN(object, above(std::move(object)));
  }
  for (std::string& prefix : page.prefixes) {
    if (!prefix.starts_with(root_)) {
      return failure(StatusCode::kInternal, fmt::format("{} listed '{}', which is not under '{}'",
                                                        inner_->describe(), prefix, root_));
    }
    prefix.erase(0, root_.size());
  }
  return page;
}

Result<ObjectInfo> PrefixedObjectStore::put(const RequestContext& context, const ObjectKey& key,
                                            Slice data, const PutOptions& options) {
  MR_RETURN_IF_ERROR(validate_key(key));
  return above(inner_->put(context, below(key), std::move(data), options));
}

Result<std::unique_ptr<Upload>> PrefixedObjectStore::start_upload(const RequestContext& context,
                                                                  const ObjectKey& key,
                                                                  const PutOptions& options) {
  MR_RETURN_IF_ERROR(validate_key(key));
  MR_ASSIGN_OR_RETURN(auto upload, inner_->start_upload(context, below(key), options));
  return std::make_unique<PrefixedUpload>(std::move(upload), key);
}

Result<ObjectInfo> PrefixedObjectStore::copy(const RequestContext& context,
                                             const ObjectInfo& source, const ObjectKey& target) {
  MR_RETURN_IF_ERROR(validate_key(source.key));
  MR_RETURN_IF_ERROR(validate_key(target));
  ObjectInfo from = source;
  from.key = below(source.key);
  return above(inner_->copy(context, from, below(target)));
}

Status PrefixedObjectStore::remove(const RequestContext& context, std::span<const ObjectKey> keys) {
  std::vector<ObjectKey> rooted;
  rooted.reserve(keys.size());
  for (const ObjectKey& key : keys) {
    MR_RETURN_IF_ERROR(validate_key(key));
    rooted.push_back(below(key));
  }
  return inner_->remove(context, rooted);
}

std::string PrefixedObjectStore::describe() const {
  std::string place = inner_->describe();
  const std::size_t at = std::min(place.find(" at "), place.size());
  const bool has_slash = at > 0 && place[at - 1] == '/';
  return place.insert(at, (has_slash ? "" : "/") + root_.substr(0, root_.size() - 1));
}

}  // namespace millrace
