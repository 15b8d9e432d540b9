#include "dataset/garbage_collector.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"

namespace millrace {

GarbageCollector::GarbageCollector(RegistryAccess access, GarbageOptions options)
    : access_(std::move(access)),
      registry_(access_),
      options_(std::move(options)),
      manifests_(access_.store, options_.manifest_directory) {}

RequestContext GarbageCollector::request(const RequestContext& context) const {
  return context.with_deadline(access_.clock.now() + options_.request_timeout);
}

Result<GarbageReport> GarbageCollector::run(const RequestContext& context) {
  MR_RETURN_IF_ERROR(purge_expired(context));
  MR_RETURN_IF_ERROR(end_reservations(context));
  MR_RETURN_IF_ERROR(find_live_layouts(context));
  MR_ASSIGN_OR_RETURN(const std::uint64_t objects, count_live_objects(context));
  const std::uint64_t passes = AliveKeys::passes_for(objects);
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    AliveKeys alive(pass, passes);
    MR_RETURN_IF_ERROR(add_live_keys(context, alive));
    alive.seal();
    MR_RETURN_IF_ERROR(collect_manifests(context, alive));
    MR_RETURN_IF_ERROR(collect_objects(context, alive));
  }
  MR_RETURN_IF_ERROR(collect_indexes(context));
  MR_RETURN_IF_ERROR(collect_probes(context));
  if (options_.repack) MR_RETURN_IF_ERROR(repack_thin(context));
  return std::move(report_);
}

Status GarbageCollector::purge_expired(const RequestContext& context) {
  MR_ASSIGN_OR_RETURN(auto listings, registry_.every_version(request(context)));
  std::vector<VersionEntry> versions;
  for (VersionListing& listing : listings) {
    if (!listing.entry) return std::move(listing.entry).error();
    VersionEntry& entry = *listing.entry;
    if (entry.state() == VersionState::kRemoved &&
        access_.clock.wall_now() >= entry.removal->restorable_until()) {
      MR_RETURN_IF_ERROR(purge(context, entry));
    }
    versions.push_back(std::move(entry));
  }
  fates_.emplace(access_, versions);
  return {};
}

// Leaves the version as it is when it is in use, or was restored meanwhile.
Status GarbageCollector::purge(const RequestContext& context, VersionEntry& entry) {
  if (options_.dry_run) {
    const Status unused = check_unused(context, entry);
    if (unused == StatusCode::kConflict) {
      report_.not_purged.push_back(unused);
      return {};
    }
    MR_RETURN_IF_ERROR(unused);
    entry.event = VersionEvent::kPurged;
    report_.purged.push_back(entry.ref);
    return {};
  }
  auto purged = registry_.purge(request(context), entry.ref);
  if (purged) {
    report_.purged.push_back(entry.ref);
    entry = *std::move(purged);
    return {};
  }
  if (purged.error() != StatusCode::kConflict) return std::move(purged).error();
  report_.not_purged.push_back(std::move(purged).error());
  return {};
}

Status GarbageCollector::check_unused(const RequestContext& context,
                                      const VersionEntry& entry) const {
  MR_ASSIGN_OR_RETURN(const auto users,
                      registry_.runs().live_users(request(context), entry.facts->content_digest));
  for (const LiveRun& run : users) {
    if (!run.uses(entry.ref)) continue;
    return {StatusCode::kConflict, fmt::format("{} is in use by the run '{}' of {}",
                                               entry.ref.text(), run.name, run.who.describe())};
  }
  return {};
}

Status GarbageCollector::end_reservations(const RequestContext& context) {
  MR_ASSIGN_OR_RETURN(const auto open, registry_.open_reservations(request(context)));
  for (const VersionEntry& reservation : open) {
    MR_ASSIGN_OR_RETURN(const bool ended, abort_old(context, reservation));
    if (!ended) report_.open.push_back(reservation);
  }
  const TimePoint until = access_.clock.now() + options_.wait;
  while (!report_.open.empty() && access_.clock.now() < until) {
    const TimePoint next = std::min(until, access_.clock.now() + options_.poll_interval);
    if (!access_.clock.sleep_until(next, &context.cancellation()))
      return {StatusCode::kCancelled, "the wait for open reservations was cancelled"};
    MR_RETURN_IF_ERROR(forget_ended(context));
  }
  return {};
}

// Whether the reservation has ended, by us or by whoever was faster.
Result<bool> GarbageCollector::abort_old(const RequestContext& context,
                                         const VersionEntry& reservation) {
  const VersionWork work = reservation.open_work();
  const bool repack = reservation.facts.has_value();
  const Duration after =
      repack ? std::min(options_.abort_after, options_.abort_repacks_after) : options_.abort_after;
  if (work.since > access_.clock.wall_now() - after) return false;
  if (options_.dry_run) {
    fates_->pretend_aborted(reservation);
    report_.aborted.push_back(reservation);
    return true;
  }
  const std::string reason =
      fmt::format("it was open for more than {}: garbage collection", format_duration(after));
  const Status status =
      repack ? registry_.abort_repack(request(context), reservation.ref, work.nonce, reason)
             : registry_.abort(request(context), Reservation::of(reservation), reason);
  if (status.ok()) report_.aborted.push_back(reservation);
  if (status.ok() || status == StatusCode::kConflict) return true;
  return failure(status);
}

Status GarbageCollector::forget_ended(const RequestContext& context) {
  std::vector<VersionEntry> open;
  for (VersionEntry& reservation : report_.open) {
    MR_ASSIGN_OR_RETURN(const VersionEntry now,
                        registry_.version(request(context), reservation.ref));
    if (now.open_work().nonce == reservation.open_work().nonce)
      open.push_back(std::move(reservation));
  }
  report_.open = std::move(open);
  return {};
}

}  // namespace millrace
