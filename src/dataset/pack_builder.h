#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer_pool.h"
#include "base/executor.h"
#include "base/request_context.h"
#include "base/status.h"
#include "cache/object_version.h"
#include "dataset/pack_planner.h"
#include "dataset/source_tree.h"
#include "objectstore/object_store.h"
#include "platform/digest.h"

namespace millrace {

struct PackBuilderOptions {
  // A pack up to this size is stored by one put, in one buffer.
  std::uint64_t put_bytes_max = 16 * kMiB;
  // How much is read and sent at a time. A multiple of the cache's unit. As large as stores make
  // the parts of an upload, so that one is sent from where it was read to, without a copy.
  std::uint64_t chunk_bytes = 16 * kMiB;
  // How many files of a chunk are read at once when there are readers.
  std::size_t reads_max = 32;
};

// What a manifest needs to know of a stored pack.
struct BuiltPack {
  struct Member {
    std::uint64_t content_offset = 0;
    Sha256Digest hash{};
  };
  // Key, size and identity; nothing else is filled.
  ObjectInfo object = {};
  // The CRC-32C of each unit of the object.
  UnitChecksums checksums = {};
  // In the order of the plan.
  std::vector<Member> members = {};
};

// Writes planned packs to a store.
//
// Safe from any thread: several packs may be built at once. One that waits for a buffer of the pool
// holds no other but those on their way to the store, which come back: the pool needs room for one
// chunk, and the more it has, the more is on its way.
class PackBuilder {
 public:
  // Everything outlives the builder. `readers` may be null; see PackStream.
  PackBuilder(ObjectStore& store, BufferPool& pool, Executor* readers = nullptr,
              PackBuilderOptions options = {});

  // Reads the files of the plan from `source` and stores the pack under `key`. On failure nothing
  // is visible there: kConflict that names a file that is not as it was scanned, kInternal when the
  // store keeps another number of bytes than it was given, and the failures of source and store.
  Result<BuiltPack> build(const RequestContext& context, SourceTree& source,
                          const PlannedPack& pack, const ObjectKey& key,
                          const PutOptions& put_options);

 private:
  ObjectStore& store_;
  BufferPool& pool_;
  Executor* const readers_;
  const PackBuilderOptions options_;
};

}  // namespace millrace
