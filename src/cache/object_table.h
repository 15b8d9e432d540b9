#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/mutex.h"
#include "cache/cached_object.h"
#include "cache/object_version.h"
#include "cache/readahead.h"

namespace millrace {

// The objects that somebody uses or used lately. An object that is not here may still be on disk.
//
// Invariant: at most one CachedObject per digest is in the table, and only that one may change what
// is on the disk. Objects in use stay; beyond `objects_max` idle ones go, and lose nothing but the
// knowledge which of their units were verified. So do large ones beyond `large_max`, since each has
// files of its own open.
//
// All methods are safe from any thread.
class ObjectTable {
 public:
  ObjectTable(ReadaheadOptions readahead, std::size_t objects_max, std::size_t large_max = SIZE_MAX)
      : readahead_(readahead),
        objects_per_shard_max_(objects_max / kShards + 1),
        large_max_(large_max) {}

  std::shared_ptr<CachedObject> find_or_add(const ObjectVersion& version);
  std::shared_ptr<CachedObject> find(const ObjectDigest& digest);
  // Takes the object out, so that the next reader starts anew. Those who hold it go on reading.
  void detach(const CachedObject& object);
  // Runs `change` if the object is not in the table, and keeps it out meanwhile. False when it is.
  bool if_absent(const ObjectDigest& digest, const std::function<void()>& change);

  std::size_t size() const;
  // Drops idle large ones beyond the limit. False when those beyond it are in use: then no more
  // should be held open for long.
  bool has_room_for_large();

 private:
  // So many that 64 readers seldom meet.
  static constexpr std::size_t kShards = 64;

  struct Shard {
    Mutex mutex;
    std::unordered_map<ObjectDigest, std::shared_ptr<CachedObject>> objects MR_GUARDED_BY(mutex);
    // Where the search for idle objects goes on.
    std::size_t hand MR_GUARDED_BY(mutex) = 0;
  };
  Shard& shard_of(const ObjectDigest& digest) {
    return shards_[std::to_integer<std::size_t>(digest.bytes[15]) % kShards];
  }
  void drop_idle(Shard& shard) MR_REQUIRES(shard.mutex);
  // Some of them; how many.
  std::size_t drop_idle_large();
  using Objects = decltype(Shard::objects);
  void erase(Objects& objects, Objects::iterator object);

  const ReadaheadOptions readahead_;
  const std::size_t objects_per_shard_max_;
  const std::size_t large_max_;
  std::atomic<std::size_t> large_ = 0;
  std::atomic<std::size_t> large_hand_ = 0;  // The shard where the search for idle ones goes on.
  mutable std::array<Shard, kShards> shards_;
};

}  // namespace millrace
