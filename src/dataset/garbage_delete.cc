// Step 4 of a collection: what is not alive goes.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/little_endian.h"
#include "dataset/append_log_listing.h"
#include "dataset/frame_format.h"
#include "dataset/garbage_collector.h"
#include "dataset/log_record_fields.h"
#include "dataset/publish_uploads.h"

namespace millrace {
namespace {

// Where the trailer of a stored manifest has the number of its frames (docs/formats/manifest.md).
constexpr std::size_t kTrailerFrameCountAt = 16;

// The digest that the key of a manifest ends in; nothing when it is the key of something else.
std::optional<Sha256Digest> layout_of_manifest_key(std::string_view key) {
  if (!key.starts_with(kManifestsPrefix)) return std::nullopt;
  const std::string_view name = key.substr(kManifestsPrefix.size());
  const auto bytes = from_hex(name);
  Sha256Digest digest{};
  if (!bytes || bytes->size() != digest.size() || to_hex(*bytes) != name) return std::nullopt;
  std::ranges::copy(*bytes, digest.begin());
  return digest;
}

// The layout of a manifest of which no log tells where its index lies.
Result<VersionLayout> layout_of_object(const RequestContext& context, ObjectStore& store,
                                       const ObjectInfo& object, const Sha256Digest& digest) {
  if (object.size < kFrameTrailerBytes)
    return failure(StatusCode::kCorruption, "it is too short for a manifest");
  const ByteRange range{object.size - kFrameTrailerBytes, kFrameTrailerBytes};
  MR_ASSIGN_OR_RETURN(const GetResult trailer,
                      store.get(context, {.key = object.key, .range = range}));
  if (trailer.data.size() != kFrameTrailerBytes)
    return failure(StatusCode::kCorruption, "it is shorter than it was listed");
  const auto frames = load_little_endian<std::uint64_t>(trailer.data.data() + kTrailerFrameCountAt);
  if (frames > (object.size - kFrameTrailerBytes) / kFrameRecordBytes)
    return failure(StatusCode::kCorruption, "it has no index");
  return VersionLayout{.layout_digest = digest,
                       .manifest_key = object.key.value(),
                       .manifest_bytes = object.size,
                       .index_bytes = frames * kFrameRecordBytes + kFrameTrailerBytes};
}

// Pages of a listing, each as one request of `context`.
Status for_each_garbage_page(const std::function<RequestContext()>& request, ObjectStore& store,
                             const std::string& prefix,
                             const std::function<Status(const ListPage&)>& take) {
  ListRequest list;
  list.prefix = prefix;
  do {
    MR_ASSIGN_OR_RETURN(const ListPage page, store.list(request(), list));
    MR_RETURN_IF_ERROR(take(page));
    list.continuation = page.continuation;
  } while (!list.continuation.empty());
  return {};
}

}  // namespace

Status GarbageCollector::erase(const RequestContext& context,
                               const std::vector<ObjectInfo>& objects, std::uint64_t& counter) {
  if (objects.empty()) return {};
  if (!options_.dry_run) {
    std::vector<ObjectKey> keys;
    for (const ObjectInfo& object : objects)
      keys.push_back(object.key);
    MR_RETURN_IF_ERROR(access_.store.remove(request(context), keys));
  }
  for (const ObjectInfo& object : objects) {
    options_.deleted(object.key.value(), object.size);
    report_.bytes += object.size;
  }
  counter += objects.size();
  return {};
}

Status GarbageCollector::collect_manifests(const RequestContext& context, const AliveKeys& alive) {
  return for_each_garbage_page(
      [&] { return request(context); }, access_.store, std::string(kManifestsPrefix),
      [&](const ListPage& page) -> Status {
        std::vector<ObjectInfo> garbage;
        for (const ObjectInfo& object : page.objects) {
          if (live_manifest_keys_.contains(object.key.value())) continue;
          const auto dead = names_dead_object(context, object, alive);
          if (dead && *dead) garbage.push_back(object);
          if (dead || dead.error() == StatusCode::kNotFound) continue;
          if (dead.error() != StatusCode::kCorruption && dead.error() != StatusCode::kUnsupported)
            return dead.error();
          ++report_.unreadable_manifests;
        }
        return erase(context, garbage, report_.manifests);
      });
}

// Manifests are named by their content, so the next publish may write the very one that is garbage
// now. But not one that names an object that no publish can know of any more.
Result<bool> GarbageCollector::names_dead_object(const RequestContext& context,
                                                 const ObjectInfo& object, const AliveKeys& alive) {
  const auto digest = layout_of_manifest_key(object.key.value());
  if (!digest) return false;
  MR_ASSIGN_OR_RETURN(const VersionLayout layout,
                      layout_of_object(request(context), access_.store, object, *digest));
  MR_ASSIGN_OR_RETURN(const auto manifest, dead_manifests_.open(context, layout));
  for (std::uint32_t number = 0; number < manifest->objects(); ++number) {
    MR_ASSIGN_OR_RETURN(const ManifestObject named, manifest->object(number));
    if (named.foreign) continue;
    MR_ASSIGN_OR_RETURN(const ReservationFate fate,
                        fates_->of_key(request(context), named.key.value()));
    if (may_delete(fate) && alive.is_dead(named.key.value())) return true;
  }
  return false;
}

Status GarbageCollector::collect_objects(const RequestContext& context, const AliveKeys& alive) {
  for (const auto& [ref, entry] : fates_->versions()) {
    const std::string prefix = fmt::format("{}/{}/", ref.dataset.text(), ref.version.text());
    MR_ASSIGN_OR_RETURN(const auto folders, list_folders(request(context), access_.store, prefix));
    for (const std::string& folder : folders) {
      if (!is_record_nonce(folder)) continue;
      MR_ASSIGN_OR_RETURN(const ReservationFate fate, fates_->of(request(context), ref, folder));
      if (!may_delete(fate)) continue;
      MR_RETURN_IF_ERROR(collect_below(context, reservation_prefix(ref, folder), alive));
    }
  }
  return {};
}

Status GarbageCollector::collect_below(const RequestContext& context, const std::string& prefix,
                                       const AliveKeys& alive) {
  return for_each_garbage_page([&] { return request(context); }, access_.store, prefix,
                               [&](const ListPage& page) -> Status {
                                 std::vector<ObjectInfo> garbage;
                                 for (const ObjectInfo& object : page.objects) {
                                   if (alive.is_dead(object.key.value())) garbage.push_back(object);
                                 }
                                 return erase(context, garbage, report_.objects);
                               });
}

}  // namespace millrace
