#include "cache/cache_directories.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/checksum.h"
#include "base/log.h"

namespace millrace {
namespace {

// How often the free space of the disk is looked at: after so many bytes were written.
constexpr std::uint64_t kBytesPerLook = 64 * kMiB;
// A block's use is noted this often while the cache turns over once.
constexpr std::uint64_t kTicksPerTurn = 16;
// A victim that is being filled at this moment is passed over, but not for ever.
constexpr std::size_t kBusyVictimsMax = 64;

}  // namespace

CacheDirectories::CacheDirectories(std::vector<std::unique_ptr<CacheDirectory>> directories,
                                   ObjectTable& objects, Metrics& metrics)
    : objects_(objects),
      directories_(std::move(directories)),
      evicted_blocks_(metrics.counter(MetricId::kCacheEvictedBlocks)),
      evicted_bytes_(metrics.counter(MetricId::kCacheEvictedBytes)),
      used_(metrics.gauge(MetricId::kCacheUsedBytes)),
      limit_(metrics.gauge(MetricId::kCacheLimitBytes)),
      leased_(metrics.gauge(MetricId::kCacheLeasedBytes)) {
  assert(!directories_.empty());
}

CacheDirectory& CacheDirectories::of(const ObjectDigest& digest) {
  if (directories_.size() == 1) return *directories_.front();
  CacheDirectory* best = nullptr;
  double best_score = 0;
  for (const auto& directory : directories_) {
    // The lowest of exponential variates with the directories' weights as rates: each wins in
    // proportion to its weight.
    const std::uint32_t hash = crc32c(as_bytes(directory->path()), crc32c(digest.bytes));
    const double uniform = (static_cast<double>(hash) + 1) / 4294967297.0;
    const double score = -std::log(uniform) / static_cast<double>(directory->quota_bytes() + 1);
    if (best == nullptr || score < best_score) {
      best = directory.get();
      best_score = score;
    }
  }
  return *best;
}

bool CacheDirectories::make_room(CacheDirectory& directory, std::uint64_t bytes) {
  count_fill(bytes);
  std::vector<CacheSpace::Block> in_use;
  bool reserved = directory.space().try_reserve(bytes);
  while (!reserved && in_use.size() < kBusyVictimsMax) {
    const std::optional<CacheSpace::Block> victim = directory.space().pop_victim();
    if (!victim) break;
    if (!free_block(directory, *victim)) {
      in_use.push_back(*victim);
      continue;
    }
    evicted_blocks_.add();
    evicted_bytes_.add(victim->bytes);
    reserved = directory.space().try_reserve(bytes);
  }
  for (const CacheSpace::Block& block : in_use)
    directory.space().keep(block);
  publish_gauges();
  return reserved;
}

void CacheDirectories::enforce_limit(CacheDirectory& directory) {
  directory.refresh_limit();
  directory.leases().expire();
  std::vector<CacheSpace::Block> in_use;
  CacheSpace& space = directory.space();
  while (space.is_over_limit() && in_use.size() < kBusyVictimsMax) {
    const std::optional<CacheSpace::Block> victim = space.pop_victim();
    if (victim) {
      if (free_block(directory, *victim)) {
        evicted_blocks_.add();
        evicted_bytes_.add(victim->bytes);
      } else {
        in_use.push_back(*victim);
      }
      continue;
    }
    const std::optional<LeaseInfo> broken = directory.leases().break_one();
    if (!broken) break;
    log_error("the disk is full: a lease of the cache is broken", {{"directory", directory.path()},
                                                                   {"lease", broken->id.value()},
                                                                   {"holder", broken->holder},
                                                                   {"bytes", broken->bytes}});
  }
  for (const CacheSpace::Block& block : in_use)
    space.keep(block);
}

bool CacheDirectories::free_block(CacheDirectory& directory, const CacheSpace::Block& block) {
  if (&of(block.digest) != &directory) return free_unused(directory, block);
  for (;;) {
    if (const std::shared_ptr<CachedObject> object = objects_.find(block.digest)) {
      return free_active(directory, *object, block.block);
    }
    bool freed = false;
    if (objects_.if_absent(block.digest, [&] { freed = free_unused(directory, block); })) {
      return freed;
    }
  }
}

bool CacheDirectories::free_unused(CacheDirectory& directory, const CacheSpace::Block& block) {
  const Status status = directory.free_block(block.digest, block.block);
  if (!status.ok()) {
    directory.note_write_failure(status);
    return false;
  }
  directory.space().remove(block.digest, block.block);
  return true;
}

bool CacheDirectories::free_active(CacheDirectory& directory, CachedObject& object,
                                   std::uint32_t block) {
  if (!load_now(directory, object, [] {})) return false;
  if (object.goes_whole()) return remove_whole(directory, object).ok();
  const std::uint32_t first = block * kBlockUnits;
  const UnitRange units{first, std::min(kBlockUnits, object.units() - first)};
  switch (object.begin_freeing(units)) {
    case CachedObject::Freeing::kBusy:
      return false;
    case CachedObject::Freeing::kNothing:
      directory.space().remove(object.version().digest(), block);
      break;
    case CachedObject::Freeing::kStarted: {
      const Status status = object.stored()->forget(units);
      // Before anybody can fill the block anew.
      directory.space().remove(object.version().digest(), block);
      object.freed(units);
      if (!status.ok()) {
        // Its records are gone, or will be found wanting: the bytes are nobody's, and still there.
        directory.note_write_failure(status);
      }
      break;
    }
  }
  return true;
}

bool CacheDirectories::load_now(CacheDirectory& directory, CachedObject& object, Task when_loaded) {
  switch (object.begin_load(when_loaded)) {
    case CachedObject::Load::kDone:
      return true;
    case CachedObject::Load::kRunning:
      return false;
    case CachedObject::Load::kStarting:
      break;
  }
  CacheDirectory::Loaded loaded = directory.load(object.version());
  object.loaded(std::move(loaded.stored), loaded.recorded, loaded.handed_out);
  return true;
}

Status CacheDirectories::remove_whole(CacheDirectory& directory, CachedObject& object) {
  const std::optional<std::uint64_t> unlinked_bytes = object.begin_removal();
  if (!unlinked_bytes) {
    return {StatusCode::kConflict, "the object is being read into the cache just now"};
  }
  const ObjectDigest& digest = object.version().digest();
  Status status = directory.remove(digest);
  if (status.code() == StatusCode::kNotFound) status = Status();
  if (!status.ok()) directory.note_write_failure(status);
  directory.space().remove_object(digest, *unlinked_bytes);
  // Last: from now on somebody may fill a new one.
  objects_.detach(object);
  return status;
}

Status CacheDirectories::count_all(CacheDirectory& directory, const std::function<bool()>& stop,
                                   const std::shared_ptr<const void>& until_counted) {
  return directory.for_each_object([&](const ObjectDigest& digest, CacheDirectory::OnDisk on_disk) {
    if (on_disk == CacheDirectory::OnDisk::kWithoutMap) {
      // What is being made is in use.
      objects_.if_absent(digest, [&] { directory.remove_orphan(digest); });
    } else {
      count(directory, digest, until_counted);
    }
    return !stop();
  });
}

// Who uses an object books what he finds when he loads it, and what he writes after that: counted
// from the disk as well, it would count twice.
void CacheDirectories::count(CacheDirectory& directory, const ObjectDigest& digest,
                             const std::shared_ptr<const void>& until_counted) {
  if (&of(digest) != &directory) return directory.count(digest);
  for (;;) {
    if (const std::shared_ptr<CachedObject> object = objects_.find(digest)) {
      load_now(directory, *object, [until_counted] {});
      return;
    }
    if (objects_.if_absent(digest, [&] { directory.count(digest); })) return;
  }
}

void CacheDirectories::discard(CacheDirectory& directory, const ObjectDigest& digest,
                               const Status& why) {
  const bool was_absent = objects_.if_absent(digest, [&] {
    directory.discard(digest, why);
    directory.space().remove_object(digest);
  });
  // Whoever uses it has read its records before they were damaged, and goes on.
  if (!was_absent) log_warn("a damaged object of the cache is in use", {{"why", why.to_string()}});
}

bool CacheDirectories::distrust(CachedObject& object, UnitRange units) {
  const ObjectVersion& version = object.version();
  CacheDirectory& directory = of(version.digest());
  if (version.size() <= kSmallObjectBytesMax) {
    // When the disk refuses, the next start finds the same damage.
    if (remove_whole(directory, object).ok()) return true;
    const UnitRange all{0, object.units()};
    if (!object.begin_distrust(all)) return false;
    object.freed(all);
    return true;
  }
  if (!object.begin_distrust(units)) return false;
  const Status status = object.stored()->distrust(units);
  // The right bytes will be written over them, and counted then.
  for (std::uint32_t unit = units.first; unit < units.end(); ++unit) {
    const ByteRange bytes = bytes_of({unit, 1}, version.size());
    directory.space().shrink(version.digest(), unit / kBlockUnits,
                             static_cast<std::uint32_t>(bytes.length));
  }
  object.freed(units);
  if (!status.ok()) directory.note_write_failure(status);
  return true;
}

Status CacheDirectories::drop(const ObjectVersion& version) {
  CacheDirectory& directory = of(version.digest());
  if (directory.space().is_held(version.digest(), block_count(version.size()))) {
    return {StatusCode::kConflict, "some of the object is leased"};
  }
  return remove_whole(directory, *objects_.find_or_add(version));
}

void CacheDirectories::count_fill(std::uint64_t bytes) {
  const std::uint64_t before = filled_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (before / kBytesPerLook != (before + bytes) / kBytesPerLook) {
    for (const auto& directory : directories_)
      enforce_limit(*directory);
  }
  std::uint64_t limit = 0;
  for (const auto& directory : directories_)
    limit += directory->space().limit_bytes();
  const std::uint64_t bytes_per_tick = std::max<std::uint64_t>(limit / kTicksPerTurn, 1);
  if (before / bytes_per_tick != (before + bytes) / bytes_per_tick) {
    tick_.fetch_add(1, std::memory_order_relaxed);
  }
}

void CacheDirectories::publish_gauges() {
  std::uint64_t used = 0;
  std::uint64_t limit = 0;
  std::uint64_t leased = 0;
  for (const auto& directory : directories_) {
    used += directory->space().used_bytes();
    limit += directory->space().limit_bytes();
    leased += directory->space().held_bytes();
  }
  used_.set(static_cast<std::int64_t>(used));
  limit_.set(static_cast<std::int64_t>(limit));
  leased_.set(static_cast<std::int64_t>(leased));
}

}  // namespace millrace
