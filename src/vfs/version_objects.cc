#include "vfs/version_objects.h"

#include <utility>

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
                     .bytes = {extent.offset, extent.logical_bytes}});
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
    if (known != shard.objects.end()) return known->second;
  }
  MR_ASSIGN_OR_RETURN(ManifestObject known_there, manifest_->object(number));
  const ObjectContent content =
      is_pack_key(known_there.key.value()) ? ObjectContent::kManyFiles : ObjectContent::kOneFile;
  MR_ASSIGN_OR_RETURN(ObjectVersion version, object_version(std::move(known_there), content));
  MutexLock lock(shard.mutex);
  if (shard.objects.size() >= kObjectsPerShardMax) shard.objects.erase(shard.objects.begin());
  shard.objects.emplace(number, version);
  return version;
}

Result<ObjectVersion> VersionObjects::object_version(ManifestObject object,
                                                     ObjectContent content) const {
  StoreId store = store_;
  if (!object.store.empty()) {
    MR_ASSIGN_OR_RETURN(std::shared_ptr<ObjectStore> other, other_stores_(object.store));
    store = StoreId(other->describe());
    cache_.add_store(store, std::move(other));
  }
  return ObjectVersion(std::move(store), std::move(object.key), std::move(object.identity),
                       object.size, std::move(object.checksums), content);
}

}  // namespace millrace
