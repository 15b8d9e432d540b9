#include "cache/cache_leases.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "cache/lease_format.h"
#include "cache/unit.h"

namespace millrace {
namespace {

LeasedBlocks blocks_of(const LeasedRange& leased) {
  const std::uint64_t begin = std::min(leased.range.offset, leased.object_size);
  const std::uint64_t end = begin + std::min(leased.range.length, leased.object_size - begin);
  const auto first = static_cast<std::uint32_t>(begin / kBlockBytes);
  return {leased.digest, first, begin == end ? 0 : block_count(end) - first};
}

std::uint64_t bytes_of_blocks(const LeasedBlocks& blocks, std::uint64_t object_size) {
  const std::uint64_t begin = std::min(blocks.first * kBlockBytes, object_size);
  return std::min((std::uint64_t{blocks.first} + blocks.count) * kBlockBytes, object_size) - begin;
}

Status check_fit(CacheDirectory& directory, const StoredLease& lease) {
  std::uint64_t others = 0;
  for (const LeaseInfo& info : directory.leases().list()) {
    if (info.id != lease.info.id) others += info.bytes;
  }
  const std::uint64_t limit = directory.space().limit_bytes();
  if (others + lease.info.bytes <= limit) return {};
  return {StatusCode::kResourceExhausted,
          fmt::format("the lease '{}' needs {} in {}, which may hold {} and has leased {}",
                      lease.info.id.value(), format_size(lease.info.bytes), directory.path(),
                      format_size(limit), format_size(others))};
}

}  // namespace

Status CacheLeases::grant(const RequestContext& context, const LeaseRequest& request) {
  MR_RETURN_IF_ERROR(validate_lease_id(request.id));
  MR_RETURN_IF_ERROR(context.check(clock_));
  const WallTime expires = clock_.wall_now() + request.lifetime;
  std::map<CacheDirectory*, StoredLease> parts;
  for (const auto& directory : directories_.all()) {
    directory->leases().expire();
    parts[directory.get()].info = {request.id, request.holder, expires, 0};
  }
  for (const LeasedRange& leased : request.ranges) {
    StoredLease& part = parts[&directories_.of(leased.digest)];
    part.blocks.push_back(blocks_of(leased));
    part.info.bytes += bytes_of_blocks(part.blocks.back(), leased.object_size);
  }
  for (const auto& [directory, lease] : parts)
    MR_RETURN_IF_ERROR(check_fit(*directory, lease));
  for (const auto& [directory, lease] : parts)
    MR_RETURN_IF_ERROR(directory->leases().grant(lease));
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
