#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/buffer_pool.h"
#include "objectstore/object_store.h"

namespace millrace::bench {

// A read-only store whose objects are computed, so that a benchmark of what lies above it needs no
// memory and no server for them. Every word of an object differs from its neighbours.
class GeneratedStore final : public ObjectStore {
 public:
  // Bodies come from the pool, as a real store's do.
  explicit GeneratedStore(BufferPool& pool) : pool_(pool) {}

  // The bytes of any object at an offset that is a multiple of 8.
  static void generate(std::uint64_t offset, MutableByteView into);
  static constexpr std::string_view kIdentity = "generated";

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
  std::string describe() const override { return "generated objects"; }

 private:
  BufferPool& pool_;
};

}  // namespace millrace::bench
