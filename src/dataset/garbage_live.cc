// Step 3 of a collection: what is alive.

#include <set>
#include <utility>

#include <fmt/format.h>

#include "dataset/garbage_collector.h"
#include "dataset/manifest_cursor.h"

namespace millrace {

Status GarbageCollector::find_live_layouts(const RequestContext& context) {
  MR_ASSIGN_OR_RETURN(auto listings, registry_.every_version(request(context)));
  std::set<VersionRef> listed;
  for (VersionListing& listing : listings) {
    if (!listing.entry) return std::move(listing.entry).error();
    if (listing.entry->facts) MR_RETURN_IF_ERROR(add_layouts_of(context, *listing.entry));
    listed.insert(listing.ref);
  }
  // Logs stay for ever. A list that lacks one would cost that version all that it has.
  for (const auto& [ref, before] : fates_->versions()) {
    if (listed.contains(ref)) continue;
    return {StatusCode::kUnavailable,
            fmt::format("{} was listed when this collection began, and is not now: nothing is "
                        "deleted; begin again",
                        ref.text())};
  }
  return {};
}

// A version that was purged after step 1 counts as alive: an open reservation may have read it. So
// do all layouts that it had since then, and those that were replaced lately.
Status GarbageCollector::add_layouts_of(const RequestContext& context, const VersionEntry& entry) {
  const auto before = fates_->versions().find(entry.ref);
  const bool known = before != fates_->versions().end();
  if (known && before->second.state() == VersionState::kPurged) return {};
  live_contents_.insert(entry.facts->content_digest);
  std::vector<VersionEntry> entries = {entry};
  const std::uint64_t since = known ? before->second.number : 1;
  const WallTime grace = access_.clock.wall_now() - options_.layout_grace;
  if (since != entry.number || (entry.facts->repacked && entry.facts->repacked->since > grace)) {
    MR_ASSIGN_OR_RETURN(entries, registry_.history(request(context), entry.ref));
  }
  for (std::size_t n = 0; n < entries.size(); ++n) {
    const VersionEntry& past = entries[n];
    // Replaced by the next record, if by any so early.
    const bool last = n + 1 == entries.size();
    if (!past.facts || (!last && past.number < since && entries[n + 1].since <= grace)) continue;
    const bool present = past.facts->layout == entry.facts->layout;
    if (!live_manifest_keys_.insert(past.facts->layout.manifest_key).second) continue;
    live_.push_back({.ref = past.ref,
                     .layout = past.facts->layout,
                     .registered = past.facts->origin == VersionOrigin::kRegistered,
                     .present = present,
                     .replaceable = present && entry.readable()});
  }
  return {};
}

Result<std::uint64_t> GarbageCollector::count_live_objects(const RequestContext& context) {
  std::uint64_t objects = 0;
  for (const LiveLayout& live : live_) {
    auto manifest = manifests_.open(context, live.layout);
    if (!manifest) return failure(explain_unreadable(context, live, manifest.error()));
    objects += 1 + (live.registered ? (*manifest)->entries() : (*manifest)->objects());
  }
  return objects;
}

Status GarbageCollector::add_live_keys(const RequestContext& context, AliveKeys& alive) {
  for (const LiveLayout& live : live_) {
    if (const Status status = add_keys_of(context, live, alive); !status.ok()) {
      return explain_unreadable(context, live, status);
    }
  }
  return {};
}

// What was purged after step 1 counts as alive here, and may be deleted by whoever purged it.
Status GarbageCollector::explain_unreadable(const RequestContext& context, const LiveLayout& live,
                                            const Status& status) const {
  if (status == StatusCode::kNotFound) {
    const auto now = registry_.version(request(context), live.ref);
    if (now && now->state() == VersionState::kPurged) {
      return {StatusCode::kConflict,
              fmt::format("another collection, by {}, has purged {} since this one began, and "
                          "deletes what it had: begin again",
                          now->who.describe(), live.ref.text())};
    }
  }
  return status.with_context(
      fmt::format("nothing is deleted while it is not known what {} needs", live.ref.text()));
}

Status GarbageCollector::add_keys_of(const RequestContext& context, const LiveLayout& live,
                                     AliveKeys& alive) {
  alive.add(live.layout.manifest_key);
  MR_ASSIGN_OR_RETURN(const auto manifest, manifests_.open(context, live.layout));
  for (std::uint32_t number = 0; number < manifest->objects(); ++number) {
    MR_ASSIGN_OR_RETURN(const ManifestObject object, manifest->object(number));
    MR_RETURN_IF_ERROR(add_alive(context, object.key.value(), alive));
  }
  if (!live.registered) return {};
  // Somebody may have registered what lies below a reservation of ours.
  ManifestCursor cursor(*manifest);
  for (;;) {
    MR_ASSIGN_OR_RETURN(const auto item, cursor.next());
    if (!item) return {};
    if (item->entry.kind() != EntryKind::kFile) continue;
    MR_RETURN_IF_ERROR(add_alive(context, manifest->prefix() + std::string(item->path), alive));
  }
}

// Only what could be deleted otherwise is worth its memory.
Status GarbageCollector::add_alive(const RequestContext& context, const std::string& key,
                                   AliveKeys& alive) {
  MR_ASSIGN_OR_RETURN(const ReservationFate fate, fates_->of_key(request(context), key));
  if (may_delete(fate)) alive.add(key);
  return {};
}

bool GarbageCollector::may_delete(ReservationFate fate) const {
  if (fate == ReservationFate::kAborted) return true;
  const bool ended = fate == ReservationFate::kPurged || fate == ReservationFate::kRepacked ||
                     fate == ReservationFate::kResumed;
  return ended && report_.open.empty();
}

}  // namespace millrace
