#pragma once

#include <memory>
#include <string>

#include "objectstore/object_store.h"

namespace millrace {

// A part of a store as a store: all keys lie under "prefix/". The prefix is added on the way down
// and taken off on the way up, continuations pass through. A key that becomes longer than a key may
// be is kInvalidArgument. Safe from any thread.
class PrefixedObjectStore final : public ObjectStore {
 public:
  // `prefix` is not empty and does not end in '/'.
  PrefixedObjectStore(std::shared_ptr<ObjectStore> inner, const std::string& prefix);

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
  // "memory://prefix", or "s3://bucket/prefix at http://host" from "s3://bucket at http://host".
  std::string describe() const override;

 private:
  ObjectKey below(const ObjectKey& key) const { return ObjectKey(root_ + key.value()); }
  // Takes the prefix off what the store below answered; kInternal when it is not there.
  Result<ObjectInfo> above(Result<ObjectInfo> info) const;

  const std::shared_ptr<ObjectStore> inner_;
  const std::string root_;  // Ends in '/'.
};

}  // namespace millrace
