#include "vfs/version_objects.h"

#include <optional>
#include <utility>

#include "base/at_hand.h"
#include "base/current_request.h"
#include "dataset/publish_uploads.h"

namespace millrace {

Result<std::vector<FilePart>> VersionObjects::parts(const ManifestEntry& file) const {
  MR_ASSIGN_OR_RETURN(const std::vector<Extent> extents, manifest_->extents(file));
  std::vector<FilePart> parts;
  parts.reserve(extents.size());
  std::uint64_t at = 0;
  for (const Extent& extent : extents) {
    MR_ASSIGN_OR_RETURN(ObjectVersion object, object_of(file, extent));
    parts.push_back({.file_offset = at,
                     .object = std::move(object),
                     .bytes = {extent.offset, extent.logical_bytes},
                     .number = extent.object});
    at += extent.logical_bytes;
  }
  return parts;
}

Result<ObjectVersion> VersionObjects::object_of(const ManifestEntry& file,
                                                const Extent& extent) const {
  if (extent.object == kOwnObject) {
    MR_ASSIGN_OR_RETURN(ManifestObject object, manifest_->object_of(file, extent));
    return object_version(std::move(object), ObjectContent::kOneFile);
  }
  return object(extent.object);
}

Result<ObjectVersion> VersionObjects::object(std::uint32_t number) const {
  Shard& shard = shards_[number % kShards];
  {
    MutexLock lock(shard.mutex);
    const auto known = shard.objects.find(number);
    if (known != shard.objects.end()) return known->second.version;
  }
  MR_ASSIGN_OR_RETURN(ManifestObject known_there, manifest_->object(number));
  const ObjectContent content =
      is_pack_key(known_there.key.value()) ? ObjectContent::kManyFiles : ObjectContent::kOneFile;
  MR_ASSIGN_OR_RETURN(ObjectVersion version, object_version(std::move(known_there), content));
  MutexLock lock(shard.mutex);
  if (shard.objects.size() >= kObjectsPerShardMax) shard.objects.erase(shard.objects.begin());
  shard.objects.emplace(number, Known{.version = version, .progress = {}});
  return version;
}

std::uint64_t VersionObjects::note_read(const FilePart& part) const {
  if (part.number == kOwnObject || part.object.content() != ObjectContent::kManyFiles) return 0;
  Shard& shard = shards_[part.number % kShards];
  MutexLock lock(shard.mutex);
  const auto known = shard.objects.find(part.number);
  if (known == shard.objects.end()) return 0;
  return known->second.progress.note_read(part.bytes, part.object.size());
}

// Objects are numbered in the order of the files. A large file that lies between two packs takes
// longer to read than the round trips that this is about.
void VersionObjects::expect_behind(const RequestContext& context, std::uint32_t number,
                                   std::uint64_t bytes) const {
  if (number + 1 >= manifest_->objects()) return;
  const CurrentRequest current(context);
  const Result<ObjectVersion> next = object(number + 1);
  if (next && next->content() == ObjectContent::kManyFiles) {
    cache_.expect(context, *next, {0, bytes});
  }
}

Result<ObjectVersion> VersionObjects::object_version(ManifestObject object,
                                                     ObjectContent content) const {
  StoreId store = store_;
  if (!object.store.empty()) {
    MR_ASSIGN_OR_RETURN(store, other_store(object.store));
  }
  return ObjectVersion(std::move(store), std::move(object.key), std::move(object.identity),
                       object.size, std::move(object.checksums), content);
}

Result<StoreId> VersionObjects::other_store(const std::string& url) const {
  std::optional<StoreId> known;
  {
    MutexLock lock(mutex_);
    const auto found = known_stores_.find(url);
    if (found != known_stores_.end()) known = found->second;
  }
  if (AtHandOnly::is_in_force()) {
    if (known) return *known;
    MR_RETURN_IF_ERROR(AtHandOnly::may_wait());
  }
  Result<std::shared_ptr<ObjectStore>> other = other_stores_(url);
  // What is cached of one that is away, as of a disk that is not mounted just now, can be read.
  if (!other && known) return *known;
  if (!other) return failure(std::move(other).error());
  StoreId id((*other)->describe());
  cache_.add_store(id, *std::move(other));
  MutexLock lock(mutex_);
  known_stores_.emplace(url, id);
  return id;
}

}  // namespace millrace
