#include "frontends/fuse/fuse_calls.h"

#include <utility>
#include <vector>

namespace millrace {

void FuseCalls::add(std::uint64_t unique, std::shared_ptr<Cancellation> cancellation) {
  Shard& shard = this->shard(unique);
  MutexLock lock(shard.mutex);
  shard.calls.insert_or_assign(unique, std::move(cancellation));
}

void FuseCalls::remove(std::uint64_t unique) {
  Shard& shard = this->shard(unique);
  MutexLock lock(shard.mutex);
  shard.calls.erase(unique);
}

bool FuseCalls::interrupt(std::uint64_t unique) {
  std::shared_ptr<Cancellation> found;
  {
    Shard& shard = this->shard(unique);
    MutexLock lock(shard.mutex);
    const auto call = shard.calls.find(unique);
    if (call == shard.calls.end()) return false;
    found = call->second;
  }
  found->request();  // May answer, and so come back here.
  return true;
}

void FuseCalls::interrupt_all() {
  std::vector<std::shared_ptr<Cancellation>> found;
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    for (const auto& [unique, cancellation] : shard.calls)
      found.push_back(cancellation);
  }
  for (const auto& cancellation : found)
    cancellation->request();
}

bool FuseCalls::empty() {
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    if (!shard.calls.empty()) return false;
  }
  return true;
}

}  // namespace millrace
