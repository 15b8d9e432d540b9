#include "service/cached_versions.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/at_hand.h"
#include "base/current_request.h"
#include "base/log.h"

namespace millrace {

Result<PreloadPlan> CachedVersions::all_of(const RequestContext& context, VersionTree& tree) {
  return PreloadPlan::make(context, clock_, tree.objects(), {});
}

Result<std::shared_ptr<VersionTree>> CachedVersions::find_here(const RequestContext& context,
                                                               TreeNumber number) {
  const AtHandOnly at_hand(AtHandOnly::Reach::kDisk);
  auto tree = versions_.find(context, number);
  return at_hand.refused() ? nullptr : std::move(tree);
}

Result<CachedVersion> CachedVersions::measure(const RequestContext& context, VersionTree& tree) {
  const CurrentRequest current(context);
  MR_ASSIGN_OR_RETURN(const PreloadPlan plan, all_of(context, tree));
  CachedVersion measured{.ref = tree.ref()};
  const Status visited = plan.visit([&](const ObjectVersion& object, ByteRange range) -> Status {
    MR_ASSIGN_OR_RETURN(const std::uint64_t cached, cache_.cached_bytes(context, object, range));
    measured.total_bytes += range.length;
    measured.cached_bytes += cached;
    return {};
  });
  MR_RETURN_IF_ERROR(visited);
  return measured;
}

Result<std::vector<CachedVersion>> CachedVersions::list(const RequestContext& context) {
  const std::vector<PreloadInfo> preloads = preloads_.list();
  std::vector<CachedVersion> shown;
  for (const NumberedTree& known : versions_.known()) {
    MR_RETURN_IF_ERROR(context.check(clock_));
    const auto tree = find_here(context, known.number);
    // Nothing was read by way of a manifest that is not on this machine.
    if (tree && *tree == nullptr) continue;
    auto measured = tree ? measure(context, **tree) : Result<CachedVersion>(failure(tree.error()));
    if (!measured) {
      log_warn("cannot tell how much of a version is cached",
               {{"version", known.ref.text()}, {"error", measured.error().to_string()}});
      continue;
    }
    for (const PreloadInfo& preload : preloads) {
      if (preload.request.version != known.ref || !preload.leased_until) continue;
      measured->leased_until =
          std::max(measured->leased_until.value_or(WallTime::min()), *preload.leased_until);
    }
    if (measured->cached_bytes > 0 || measured->leased_until) shown.push_back(*measured);
  }
  std::ranges::sort(shown, {}, &CachedVersion::ref);
  return shown;
}

Result<DroppedVersion> CachedVersions::drop(const RequestContext& context, const VersionRef& ref) {
  const CurrentRequest current(context);
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<VersionTree> tree, datasets_.version(context, ref));
  for (const PreloadInfo& preload : preloads_.list()) {
    if (preload.request.version != tree->ref()) continue;
    if (!preload.leased_until && has_ended(preload.state)) continue;
    return failure(StatusCode::kConflict,
                   fmt::format("the preload {} holds {}: 'millrace preload cancel {}' ends it",
                               preload.id.value(), tree->ref().text(), preload.id.value()));
  }
  MR_ASSIGN_OR_RETURN(const PreloadPlan plan, all_of(context, *tree));
  DroppedVersion dropped;
  const Status visited = plan.visit([&](const ObjectVersion& object, ByteRange range) -> Status {
    MR_ASSIGN_OR_RETURN(const std::uint64_t cached, cache_.cached_bytes(context, object, range));
    if (cached == 0) return {};
    Status status = cache_.drop(context, object);
    if (status.ok()) dropped.bytes += cached;
    if (status.code() != StatusCode::kConflict) return status;
    ++dropped.busy_objects;
    return {};
  });
  MR_RETURN_IF_ERROR(visited);
  return dropped;
}

Result<CheckReport> CachedVersions::verify(const RequestContext& context, const VersionRef& ref) {
  const CurrentRequest current(context);
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<VersionTree> tree, datasets_.version(context, ref));
  MR_ASSIGN_OR_RETURN(const PreloadPlan plan, all_of(context, *tree));
  CheckReport report;
  const Status visited = plan.visit([&](const ObjectVersion& object, ByteRange range) -> Status {
    MR_ASSIGN_OR_RETURN(const std::uint64_t cached, cache_.cached_bytes(context, object, range));
    if (cached == 0) return {};
    MR_ASSIGN_OR_RETURN(const CheckReport part, cache_.verify(context, object));
    report.objects += part.objects;
    report.bytes += part.bytes;
    report.bad_units += part.bad_units;
    return {};
  });
  MR_RETURN_IF_ERROR(visited);
  return report;
}

}  // namespace millrace
