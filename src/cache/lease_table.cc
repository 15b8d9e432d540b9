#include "cache/lease_table.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "platform/small_file.h"

namespace millrace {
namespace {

// A million small objects take 28 MB.
constexpr std::uint64_t kLeaseFileBytesMax = 256 * kMiB;

}  // namespace

LeaseTable::LeaseTable(Disk& disk, std::string directory, CacheSpace& space, Clock& clock)
    : disk_(disk), directory_(std::move(directory) + "/leases"), space_(space), clock_(clock) {}

std::string LeaseTable::path_of(const LeaseId& id) const {
  return fmt::format("{}/{}", directory_, id.value());
}

Status LeaseTable::load() {
  MR_RETURN_IF_ERROR(disk_.make_directories(directory_));
  MR_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, disk_.list(directory_));
  MutexLock lock(mutex_);
  for (const DirectoryEntry& entry : entries) {
    const std::string path = fmt::format("{}/{}", directory_, entry.name);
    if (entry.name.ends_with(kUnfinishedSuffix)) {
      MR_RETURN_IF_ERROR(disk_.remove(path));
      continue;
    }
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<DiskFile> file, disk_.open(path, OpenMode::kRead));
    MR_ASSIGN_OR_RETURN(const std::uint64_t size, file->size());
    std::vector<std::byte> bytes(std::min(size, kLeaseFileBytesMax));
    MR_ASSIGN_OR_RETURN(const std::size_t got, file->read_at(0, bytes));
    Result<StoredLease> lease = decode_lease(ByteView(bytes).first(got));
    if (!lease || lease->info.id.value() != entry.name) {
      if (!lease && lease.error().code() == StatusCode::kUnsupported) {
        return lease.error().with_context(path);
      }
      log_error("a lease of the cache is damaged, and gone; its job should ask for it again",
                {{"lease", path}});
      MR_RETURN_IF_ERROR(disk_.remove(path));
      continue;
    }
    hold(*lease);
    leases_[LeaseId(entry.name)] = *std::move(lease);
  }
  return {};
}

void LeaseTable::hold(const StoredLease& lease) {
  for (const LeasedBlocks& blocks : lease.blocks) {
    for (std::uint32_t block = blocks.first; block < blocks.end(); ++block) {
      if (lease.kind == LeaseKind::kPromise) {
        space_.promise(blocks.digest, block, blocks.block_bytes);
      } else {
        space_.hold(blocks.digest, block);
      }
    }
  }
}

void LeaseTable::release_blocks(const StoredLease& lease) {
  for (const LeasedBlocks& blocks : lease.blocks) {
    for (std::uint32_t block = blocks.first; block < blocks.end(); ++block) {
      if (lease.kind == LeaseKind::kPromise) {
        space_.release_promise(blocks.digest, block);
      } else {
        space_.release(blocks.digest, block);
      }
    }
  }
}

Status LeaseTable::write(const StoredLease& lease) {
  if (lease.kind == LeaseKind::kHold) return {};
  return replace_small_file(disk_, path_of(lease.info.id), encode_lease(lease));
}

Status LeaseTable::remove_file(const StoredLease& lease) {
  if (lease.kind == LeaseKind::kHold) return {};
  Status status = disk_.remove(path_of(lease.info.id));
  if (status.ok()) return disk_.sync_directory(directory_);
  return status.code() == StatusCode::kNotFound ? Status() : status;
}

Status LeaseTable::grant(const StoredLease& lease) {
  MutexLock lock(mutex_);
  MR_RETURN_IF_ERROR(write(lease));
  // The new blocks first, so that what both have is never free in between.
  hold(lease);
  const auto [place, is_new] = leases_.try_emplace(lease.info.id);
  if (!is_new) release_blocks(place->second);
  place->second = lease;
  return {};
}

Status LeaseTable::renew(const LeaseId& id, WallTime expires) {
  MutexLock lock(mutex_);
  const auto found = leases_.find(id);
  if (found == leases_.end()) {
    return {StatusCode::kNotFound, fmt::format("there is no lease '{}' (any more)", id.value())};
  }
  if (found->second.kind == LeaseKind::kHold) return {};
  StoredLease renewed = found->second;
  renewed.info.expires = expires;
  MR_RETURN_IF_ERROR(write(renewed));
  found->second = std::move(renewed);
  return {};
}

Result<bool> LeaseTable::release(const LeaseId& id) {
  MutexLock lock(mutex_);
  const auto found = leases_.find(id);
  if (found == leases_.end()) return false;
  MR_RETURN_IF_ERROR(remove_file(found->second));
  release_blocks(found->second);
  leases_.erase(found);
  return true;
}

void LeaseTable::expire() {
  const WallTime now = clock_.wall_now();
  MutexLock lock(mutex_);
  std::erase_if(leases_, [&](const auto& entry) {
    const StoredLease& lease = entry.second;
    if (lease.kind == LeaseKind::kHold || lease.info.expires > now) return false;
    // A file that stays is found expired at the next start.
    if (Status status = remove_file(lease); !status.ok()) {
      log_warn("cannot remove an expired lease", {{"error", status.to_string()}});
    }
    release_blocks(lease);
    return true;
  });
}

std::optional<LeaseInfo> LeaseTable::break_one() {
  MutexLock lock(mutex_);
  const auto first = std::ranges::min_element(leases_, {}, [](const auto& entry) {
    return std::pair(entry.second.kind == LeaseKind::kPromise, entry.second.info.expires);
  });
  if (first == leases_.end()) return std::nullopt;
  LeaseInfo info = first->second.info;
  if (Status status = remove_file(first->second); !status.ok()) {
    log_warn("cannot remove a broken lease", {{"error", status.to_string()}});
  }
  release_blocks(first->second);
  leases_.erase(first);
  return info;
}

std::vector<LeaseInfo> LeaseTable::list() {
  std::vector<LeaseInfo> infos;
  MutexLock lock(mutex_);
  for (const auto& [id, lease] : leases_) {
    if (lease.kind == LeaseKind::kPromise) infos.push_back(lease.info);
  }
  return infos;
}

const StoredLease* LeaseTable::find_promise(const LeaseId& id) const {
  const auto found = leases_.find(id);
  const bool is_promise = found != leases_.end() && found->second.kind == LeaseKind::kPromise;
  return is_promise ? &found->second : nullptr;
}

std::uint64_t LeaseTable::promised_besides(const LeaseId& id) {
  MutexLock lock(mutex_);
  std::uint64_t bytes = space_.promised_bytes();
  const StoredLease* const own = find_promise(id);
  if (own == nullptr) return bytes;
  for (const LeasedBlocks& blocks : own->blocks) {
    for (std::uint32_t block = blocks.first; block < blocks.end(); ++block) {
      const CacheSpace::Promised promised = space_.promised(blocks.digest, block);
      if (promised.times == 1) bytes -= promised.bytes;
    }
  }
  return bytes;
}

bool LeaseTable::is_promised_besides(const LeaseId& id, const ObjectDigest& digest,
                                     std::uint32_t block) {
  MutexLock lock(mutex_);
  const StoredLease* const own = find_promise(id);
  const bool is_own = own != nullptr && contains_block(own->blocks, digest, block);
  return space_.promised(digest, block).times > (is_own ? 1 : 0);
}

}  // namespace millrace
