#include "cache/cache_leases.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "cache/lease_format.h"

namespace millrace {
namespace {

Status check_fit(CacheDirectories& directories, const StoredLease& lease) {
  LeaseSize size(directories, lease.info.id, lease.kind);
  for (const LeasedBlocks& blocks : lease.blocks)
    size.add(blocks);
  if (size.short_bytes() == 0) return {};
  return {StatusCode::kResourceExhausted,
          fmt::format("the lease '{}' needs {} of the cache, which may hold {}, and others have "
                      "leased {} of it besides",
                      lease.info.id.value(), format_size(size.bytes()),
                      format_size(size.limit_bytes()), format_size(size.leased_bytes()))};
}

}  // namespace

LeaseSize CacheLeases::size(const LeaseId& id, LeaseKind kind) {
  return LeaseSize(directories_, id, kind);
}

Status CacheLeases::grant(const RequestContext& context, const LeaseRequest& request) {
  MR_RETURN_IF_ERROR(validate_lease_id(request.id));
  MR_RETURN_IF_ERROR(context.check(clock_));
  StoredLease lease{
      {request.id, request.holder, clock_.wall_now() + request.lifetime, 0}, {}, request.kind};
  for (const LeasedRange& range : request.ranges) {
    const std::vector<LeasedBlocks> blocks = blocks_of(range, request.kind);
    lease.blocks.insert(lease.blocks.end(), blocks.begin(), blocks.end());
  }
  merge_blocks(lease.blocks);
  // Who holds promises nothing to anybody.
  if (request.kind == LeaseKind::kPromise) MR_RETURN_IF_ERROR(check_fit(directories_, lease));
  std::map<CacheDirectory*, StoredLease> parts;
  for (const auto& directory : directories_.all())
    parts[directory.get()] = {lease.info, {}, lease.kind};
  for (const LeasedBlocks& blocks : lease.blocks) {
    StoredLease& part = parts[&directories_.of(blocks.digest)];
    part.blocks.push_back(blocks);
    part.info.bytes += blocks.bytes();
  }
  for (const auto& [directory, part] : parts)
    MR_RETURN_IF_ERROR(directory->leases().grant(part));
  return {};
}

Status CacheLeases::renew(const RequestContext& context, const LeaseId& id, Duration lifetime) {
  MR_RETURN_IF_ERROR(context.check(clock_));
  const WallTime expires = clock_.wall_now() + lifetime;
  for (const auto& directory : directories_.all()) {
    directory->leases().expire();
    MR_RETURN_IF_ERROR(directory->leases().renew(id, expires));
  }
  return {};
}

Status CacheLeases::release(const RequestContext& context, const LeaseId& id) {
  MR_RETURN_IF_ERROR(context.check(clock_));
  for (const auto& directory : directories_.all()) {
    MR_ASSIGN_OR_RETURN([[maybe_unused]] const bool was_there, directory->leases().release(id));
  }
  return {};
}

std::vector<LeaseInfo> CacheLeases::list() {
  std::map<LeaseId, LeaseInfo> merged;
  for (const auto& directory : directories_.all()) {
    directory->leases().expire();
    for (LeaseInfo& info : directory->leases().list()) {
      const auto [place, is_new] = merged.try_emplace(info.id, info);
      if (!is_new) place->second.bytes += info.bytes;
    }
  }
  std::vector<LeaseInfo> infos;
  for (auto& [id, info] : merged)
    infos.push_back(std::move(info));
  return infos;
}

}  // namespace millrace
