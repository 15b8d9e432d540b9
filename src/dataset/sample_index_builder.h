#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "dataset/manifest_cursor.h"
#include "dataset/manifest_spool.h"
#include "dataset/sample_block.h"
#include "dataset/sample_index_format.h"
#include "dataset/tar_reader.h"
#include "dataset/version_reader.h"

namespace millrace {

struct SampleIndexOptions {
  // Shards that are read at once: each takes 1 MiB and one block of memory.
  std::size_t parallel = 16;
  // For a temporary file without a name.
  std::string scratch = {};
  // Told of shards that are done; from any thread.
  std::function<void(std::uint64_t shards)> indexed = [](std::uint64_t) {};
};

// An index that is made and not stored yet: its table, and its blocks on the disk.
class BuiltSampleIndex {
 public:
  // `scratch` is a directory for a temporary file without a name.
  explicit BuiltSampleIndex(const std::string& scratch) : spool_(scratch) {}

  const SampleIndexTable& table() const { return table_; }
  // A block as it is stored, by its number in the table.
  Result<std::vector<std::byte>> block(std::size_t number) const;

 private:
  friend class SampleShards;

  ManifestSpool spool_;
  SampleIndexTable table_;
  std::vector<std::uint64_t> spool_offsets_;  // Of each block: they came in any order.
};

// Whether a file of a version is taken for a shard: its name ends in ".tar".
bool is_sample_shard(std::string_view path);

// The samples of tar files that are read one by one, in any order, until all of them make an index.
// Memory as for build_sample_index(), and the path of each shard.
class SampleShards {
 public:
  // `name` is what failures call all of them.
  SampleShards(std::string name, const std::string& scratch)
      : name_(std::move(name)), built_(std::make_unique<BuiltSampleIndex>(scratch)) {}

  // Lists what an archive of that length holds, front to back. Failures as build_sample_index().
  // Safe from any thread, once for each path.
  Status read(const std::string& path, const TarReader::ReadAt& read_at, std::uint64_t bytes);
  // The index of a version all of whose shards were read, but those without bytes. It is done with
  // this then.
  Result<std::unique_ptr<BuiltSampleIndex>> finish(const Manifest& manifest);

 private:
  struct SpooledBlock {
    SampleBlockPlace place;
    std::uint64_t offset = 0;
  };
  using Blocks = std::vector<SpooledBlock>;

  Status list_members(const TarReader::ReadAt& read_at, std::uint64_t bytes, Blocks& blocks);
  Result<SpooledBlock> spool(const SampleBlock& block);
  Status add_shard(const ManifestCursor::Item& item) MR_REQUIRES(mutex_);

  const std::string name_;
  Mutex mutex_;
  std::map<std::string, Blocks, std::less<>> shards_ MR_GUARDED_BY(mutex_);
  std::unique_ptr<BuiltSampleIndex> built_ MR_GUARDED_BY(mutex_);
};

// Finds the samples of all tar files of a version, as WebDataset does: consecutive files of an
// archive whose names are equal up to the first dot of the last component. What has no such name
// belongs to no sample, as directories and links.
//
// Reads headers; content only where that is cheaper than another request (members below 1 MiB).
// Memory does not depend on the number of samples, but for 24 bytes per block and 40 per shard.
// Failures name version, shard and offset: kCorruption for an archive that is damaged or has a
// field twice in a sample, kUnsupported for what tar_reader.h refuses, kInvalidArgument when there
// is no shard at all; else as VersionReader. Blocks.
Result<std::unique_ptr<BuiltSampleIndex>> build_sample_index(const RequestContext& context,
                                                             const VersionReader& reader,
                                                             const SampleIndexOptions& options);

}  // namespace millrace
