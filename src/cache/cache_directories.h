#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cache/cache_directory.h"
#include "cache/object_table.h"
#include "cache/object_version.h"
#include "metrics/metrics.h"

namespace millrace {

// All directories of the cache, and making room in them.
//
// An object lives in the one directory that its digest picks, weighted by quota (rendezvous
// hashing): a directory that is added or removed moves only its share. What lies in another one
// since then is used by nobody, and goes as it is evicted. All methods are safe from any thread.
class CacheDirectories {
 public:
  CacheDirectories(std::vector<std::unique_ptr<CacheDirectory>> directories, ObjectTable& objects,
                   Metrics& metrics);

  CacheDirectory& of(const ObjectDigest& digest);
  const std::vector<std::unique_ptr<CacheDirectory>>& all() const { return directories_; }

  // Reserves room, and evicts until there is some. False when nothing more can go: then the caller
  // does not keep what it has. Blocks.
  bool make_room(CacheDirectory& directory, std::uint64_t bytes);
  // Frees what is beyond the limit, which sinks when others fill the disk: first what nobody
  // leased; then leases are broken, and the operator is told.
  void enforce_limit(CacheDirectory& directory);
  // Takes a block, or the whole of a handed-out object, off the disk. False when it is in use.
  bool free_block(CacheDirectory& directory, const CacheSpace::Block& block);
  // Takes something off the disk that cannot be told what it is.
  void discard(CacheDirectory& directory, const ObjectDigest& digest, const Status& why);
  // Takes units out of use whose bytes are wrong; a small object goes whole. False when they were
  // freed already.
  bool distrust(CachedObject& object, UnitRange units);
  // Enters all that is on the disk into the books, and removes data without a map. Reads may go on
  // meanwhile: what somebody loads just then is in the books when he is done, and `until_counted`
  // is kept until then.
  Status count_all(CacheDirectory& directory, const std::function<bool()>& stop,
                   const std::shared_ptr<const void>& until_counted);
  // Takes an object off the disk.
  Status drop(const ObjectVersion& version);

  // Advances as the cache turns over, so that a block's use is noted once per turn at most.
  std::uint16_t tick() const { return tick_.load(std::memory_order_relaxed); }

 private:
  Status remove_whole(CacheDirectory& directory, CachedObject& object);
  // Frees a block of an object that nobody uses, or that lives in another directory by now.
  static bool free_unused(CacheDirectory& directory, const CacheSpace::Block& block);
  bool free_active(CacheDirectory& directory, CachedObject& object, std::uint32_t block);
  // An object that was asked for but not loaded does not know yet what it has on the disk. False
  // when somebody else loads it just now; `when_loaded` runs then.
  bool load_now(CacheDirectory& directory, CachedObject& object, Task when_loaded);
  void count(CacheDirectory& directory, const ObjectDigest& digest,
             const std::shared_ptr<const void>& until_counted);
  void count_fill(std::uint64_t bytes);
  void publish_gauges();

  ObjectTable& objects_;
  const std::vector<std::unique_ptr<CacheDirectory>> directories_;
  Counter& evicted_blocks_;
  Counter& evicted_bytes_;
  Gauge& used_;
  Gauge& limit_;
  Gauge& leased_;
  std::atomic<std::uint64_t> filled_bytes_ = 0;
  std::atomic<std::uint16_t> tick_ = 1;
};

}  // namespace millrace
