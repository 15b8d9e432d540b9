#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/buffer.h"
#include "cli/session.h"
#include "objectstore/object_store.h"

namespace millrace::cli {

// Writes one object from a stream of unknown length: what stays small goes with one put, the rest
// as an upload in parts. Nothing is visible before finish(); destruction without it leaves nothing
// behind. Thread-compatible.
class ObjectWriter {
 public:
  // `session` and `store` outlive it.
  ObjectWriter(Session& session, const RequestContext& context, ObjectStore& store, ObjectKey key,
               PutOptions options);
  ~ObjectWriter();
  ObjectWriter(const ObjectWriter&) = delete;
  ObjectWriter& operator=(const ObjectWriter&) = delete;

  Status write(Slice data);
  // kPreconditionFailed when the condition did not hold; kInternal when the store keeps another
  // number of bytes than it was given.
  Result<ObjectInfo> finish();

 private:
  Slice joined() const;

  Session& session_;
  const RequestContext context_;
  ObjectStore& store_;
  const ObjectKey key_;
  const PutOptions options_;
  std::vector<Slice> held_;  // Until it is clear that a put will not do.
  std::uint64_t bytes_ = 0;
  std::unique_ptr<Upload> upload_;
};

}  // namespace millrace::cli
