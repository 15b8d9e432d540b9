#include "cache/object_table.h"

#include <vector>

namespace millrace {
namespace {

bool is_large(const CachedObject& object) { return object.version().size() > kSmallObjectBytesMax; }

}  // namespace

std::shared_ptr<CachedObject> ObjectTable::find_or_add(const ObjectVersion& version) {
  Shard& shard = shard_of(version.digest());
  std::shared_ptr<CachedObject> object;
  bool is_one_too_many = false;
  {
    MutexLock lock(shard.mutex);
    const auto found = shard.objects.find(version.digest());
    if (found != shard.objects.end()) return found->second;
    if (shard.objects.size() >= objects_per_shard_max_) drop_idle(shard);
    object = std::make_shared<CachedObject>(version, readahead_);
    shard.objects.emplace(version.digest(), object);
    is_one_too_many = is_large(*object) && ++large_ > large_max_;
  }
  if (is_one_too_many) drop_idle_large();
  return object;
}

void ObjectTable::erase(Objects& objects, Objects::iterator object) {
  if (is_large(*object->second)) --large_;
  objects.erase(object);
}

std::shared_ptr<CachedObject> ObjectTable::find(const ObjectDigest& digest) {
  Shard& shard = shard_of(digest);
  MutexLock lock(shard.mutex);
  const auto found = shard.objects.find(digest);
  return found == shard.objects.end() ? nullptr : found->second;
}

void ObjectTable::detach(const CachedObject& object) {
  Shard& shard = shard_of(object.version().digest());
  MutexLock lock(shard.mutex);
  const auto found = shard.objects.find(object.version().digest());
  if (found != shard.objects.end() && found->second.get() == &object) erase(shard.objects, found);
}

bool ObjectTable::if_absent(const ObjectDigest& digest, const std::function<void()>& change) {
  Shard& shard = shard_of(digest);
  MutexLock lock(shard.mutex);
  if (shard.objects.contains(digest)) return false;
  change();
  return true;
}

void ObjectTable::drop_idle(Shard& shard) {
  // An eighth at a time, so that the search is paid for by many additions. What only the table
  // holds has no reader and no flight.
  const std::size_t enough = objects_per_shard_max_ / 8 + 1;
  std::size_t dropped = 0;
  const std::size_t buckets = shard.objects.bucket_count();
  std::vector<ObjectDigest> idle;
  for (std::size_t looked = 0; looked < buckets && dropped < enough; ++looked) {
    shard.hand = (shard.hand + 1) % buckets;
    for (auto it = shard.objects.begin(shard.hand); it != shard.objects.end(shard.hand); ++it) {
      if (it->second.use_count() == 1) {
        idle.push_back(it->first);
        ++dropped;
      }
    }
  }
  for (const ObjectDigest& digest : idle)
    erase(shard.objects, shard.objects.find(digest));
}

bool ObjectTable::has_room_for_large() {
  while (large_ > large_max_) {
    if (drop_idle_large() == 0) return false;
  }
  return true;
}

std::size_t ObjectTable::drop_idle_large() {
  // An eighth at a time, as above; from all shards, since few of many may be large.
  const std::size_t enough = large_max_ / 8 + 1;
  std::size_t dropped = 0;
  for (std::size_t looked = 0; looked < kShards && dropped < enough; ++looked) {
    Shard& shard = shards_[large_hand_++ % kShards];
    MutexLock lock(shard.mutex);
    for (auto it = shard.objects.begin(); it != shard.objects.end() && dropped < enough;) {
      const auto object = it++;
      if (object->second.use_count() > 1 || !is_large(*object->second)) continue;
      erase(shard.objects, object);
      ++dropped;
    }
  }
  return dropped;
}

std::size_t ObjectTable::size() const {
  std::size_t count = 0;
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    count += shard.objects.size();
  }
  return count;
}

}  // namespace millrace
