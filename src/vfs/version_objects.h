#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "cache/block_cache.h"
#include "cache/object_version.h"
#include "dataset/manifest.h"
#include "dataset/store_resolver.h"
#include "vfs/pack_progress.h"

namespace millrace {

// A stretch of a file, and where its bytes lie.
struct FilePart {
  std::uint64_t file_offset = 0;
  ObjectVersion object;
  ByteRange bytes;
  std::uint32_t number = kOwnObject;  // Of the object in the manifest.
};

// Where the files of one layout lie, in the cache's terms. Objects that many files share are put
// together once: their checksums are kilobytes, and their digest is a hash.
//
// Safe from any thread. The cache outlives it, and learns of the stores that the manifest names.
class VersionObjects {
 public:
  // `store` is the one that the manifest is in.
  VersionObjects(std::shared_ptr<const Manifest> manifest, StoreId store, BlockCache& cache,
                 StoreResolver other_stores)
      : manifest_(std::move(manifest)),
        store_(std::move(store)),
        cache_(cache),
        other_stores_(std::move(other_stores)) {}

  const Manifest& manifest() const { return *manifest_; }
  const std::shared_ptr<const Manifest>& shared_manifest() const { return manifest_; }

  // From the first byte to the last, without gaps. Empty for an empty file. The entry is one of
  // this layout: another has its bytes elsewhere.
  Result<std::vector<FilePart>> parts(const ManifestEntry& file) const;
  // By its number in the manifest.
  Result<ObjectVersion> object(std::uint32_t number) const;

  // A part is read: how much to expect of what lies behind its object; 0 mostly. Does not block.
  std::uint64_t note_read(const FilePart& part) const;
  // Has the beginning of the next object fetched ahead, if that is a pack. May block for the
  // manifest; what fails is fetched when it is read.
  void expect_behind(const RequestContext& context, std::uint32_t number,
                     std::uint64_t bytes) const;

 private:
  static constexpr std::size_t kShards = 16;
  // 64 MiB each: the packs that are read at a time are far fewer.
  static constexpr std::size_t kObjectsPerShardMax = 256;

  struct Known {
    ObjectVersion version;
    PackProgress progress;
  };
  struct Shard {
    Mutex mutex;
    std::unordered_map<std::uint32_t, Known> objects MR_GUARDED_BY(mutex);
  };

  Result<ObjectVersion> object_of(const ManifestEntry& file, const Extent& extent) const;
  Result<ObjectVersion> object_version(ManifestObject object, ObjectContent content) const;
  // Of a store that the manifest names. May wait for it, as for a directory on another machine.
  Result<StoreId> other_store(const std::string& url) const;

  const std::shared_ptr<const Manifest> manifest_;
  const StoreId store_;
  BlockCache& cache_;
  const StoreResolver other_stores_;
  mutable std::array<Shard, kShards> shards_;
  mutable Mutex mutex_;
  mutable std::map<std::string, StoreId> known_stores_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
