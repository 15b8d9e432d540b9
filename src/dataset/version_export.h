#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/buffer_pool.h"
#include "base/request_context.h"
#include "base/status.h"
#include "dataset/version_reader.h"
#include "objectstore/object_store.h"

namespace millrace {

struct ExportOptions {
  // Shards are "<prefix>00000000.tar" and on.
  std::string prefix = {};
  // About how large a shard is. A sample that is larger makes a larger one.
  std::uint64_t shard_bytes = 64 * kMiB;
  // Shards that are written at once. Each takes a window, and what PackBuilder says.
  std::size_t parallel = 4;
  // Told of bytes as shards are stored; from any thread.
  std::function<void(std::uint64_t bytes)> stored = [](std::uint64_t) {};
};

struct ExportTotals {
  std::uint64_t shards = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;  // Of the shards.
  // A tar shard holds files only.
  std::uint64_t left_out_symlinks = 0;
};

// Writes all files of a version into `target` as tar shards in which every sample is whole,
// whatever the packs of the version look like. The content of each file is held against its SHA-256
// where the manifest has it; a shard that fails that is removed again. kConflict when there is
// something below the prefix already. After a failure some shards may be there. Blocks.
Result<ExportTotals> export_version(const RequestContext& context, const VersionReader& reader,
                                    ObjectStore& target, BufferPool& buffers,
                                    const ExportOptions& options);

}  // namespace millrace
