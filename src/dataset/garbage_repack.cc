// Step 5 of a collection: what is needed of packs that are mostly garbage moves elsewhere.

#include <set>
#include <utility>

#include <fmt/format.h>

#include "dataset/garbage_collector.h"
#include "dataset/publish_uploads.h"
#include "dataset/version_repack.h"

namespace millrace {
namespace {

// What is wrong with one version, as against a store that could not be asked.
bool concerns_one_version(const Status& status) {
  return status == StatusCode::kConflict || status == StatusCode::kCorruption ||
         status == StatusCode::kPreconditionFailed || status == StatusCode::kNotFound ||
         status == StatusCode::kUnsupported;
}

}  // namespace

Status GarbageCollector::repack_thin(const RequestContext& context) {
  for (std::optional<std::string> after = ""; after;) {
    PackTally tally(*after);
    MR_RETURN_IF_ERROR(tally_packs(context, tally));
    const auto thin = tally.thin();
    if (!thin.empty()) MR_RETURN_IF_ERROR(repack(context, thin));
    after = tally.next();
  }
  return {};
}

Status GarbageCollector::tally_packs(const RequestContext& context, PackTally& tally) {
  for (const LiveLayout& live : live_) {
    if (!live.present) continue;
    MR_ASSIGN_OR_RETURN(const auto manifest, manifests_.open(context, live.layout));
    for (std::uint32_t number = 0; number < manifest->objects(); ++number) {
      MR_ASSIGN_OR_RETURN(const ManifestObject object, manifest->object(number));
      MR_ASSIGN_OR_RETURN(const bool candidate, may_be_thin(context, object));
      if (candidate) tally.add(object.key.value(), object.size);
    }
  }
  if (tally.empty()) return {};
  for (const LiveLayout& live : live_) {
    if (!live.present) continue;
    MR_ASSIGN_OR_RETURN(const auto manifest, manifests_.open(context, live.layout));
    MR_RETURN_IF_ERROR(tally.count(*manifest, live.replaceable).with_context(live.ref.text()));
  }
  return {};
}

// All of a pack is needed as long as its maker has the layout that it was made for.
Result<bool> GarbageCollector::may_be_thin(const RequestContext& context,
                                           const ManifestObject& object) {
  if (object.foreign || !is_pack_key(object.key.value())) return false;
  MR_ASSIGN_OR_RETURN(const auto owner, fates_->owner_of_key(request(context), object.key.value()));
  if (!owner || owner->fate == ReservationFate::kPurged) return owner.has_value();
  if (owner->fate != ReservationFate::kRepacked) return false;
  return fates_->versions().at(owner->ref).facts->repacked->nonce != owner->nonce;
}

Status GarbageCollector::repack(const RequestContext& context,
                                const std::map<std::string, const TalliedPack*>& packs) {
  std::vector<std::string> keys;
  for (const auto& [key, pack] : packs)
    keys.push_back(key);
  VersionRepacker repacker(access_,
                           {.manifest_directory = options_.manifest_directory,
                            .request_timeout = options_.request_timeout},
                           keys);
  std::set<std::uint32_t> kept;
  for (LiveLayout& live : live_) {
    if (!live.replaceable) continue;
    MR_ASSIGN_OR_RETURN(const auto manifest, manifests_.open(context, live.layout));
    MR_ASSIGN_OR_RETURN(const auto named, repacker.packs_of(*manifest));
    if (named.empty() || options_.dry_run) continue;
    auto done = repacker.repack(context, live.ref, live.layout);
    if (done) {
      live.layout = std::move(done->layout);
      report_.copied_bytes += done->copied_bytes;
      report_.repacked.push_back(live.ref);
      continue;
    }
    if (!concerns_one_version(done.error())) return done.error();
    report_.not_repacked.push_back(done.error());
    for (const auto& [number, pack] : named)
      kept.insert(pack);
  }
  for (std::uint32_t number = 0; number < keys.size(); ++number) {
    if (kept.contains(number)) continue;
    const TalliedPack& pack = *packs.at(keys[number]);
    ++report_.repacked_packs;
    report_.repacked_bytes += pack.bytes;
    if (options_.dry_run) report_.copied_bytes += pack.live_bytes;
  }
  return {};
}

}  // namespace millrace
