#include "frontends/fuse/fuse_calls.h"

#include <utility>

namespace millrace {

void FuseCalls::add(std::uint64_t unique, std::uint32_t thread,
                    std::shared_ptr<Cancellation> cancellation) {
  Shard& shard = this->shard(unique);
  MutexLock lock(shard.mutex);
  shard.calls.insert_or_assign(unique, Call{thread, std::move(cancellation)});
}

void FuseCalls::remove(std::uint64_t unique) {
  Shard& shard = this->shard(unique);
  MutexLock lock(shard.mutex);
  shard.calls.erase(unique);
}

std::optional<std::uint32_t> FuseCalls::note_signal(std::uint64_t unique) {
  Shard& shard = this->shard(unique);
  MutexLock lock(shard.mutex);
  const auto call = shard.calls.find(unique);
  if (call == shard.calls.end()) return std::nullopt;
  call->second.had_signal = true;
  return call->second.thread;
}

std::vector<FuseCalls::Signalled> FuseCalls::signalled() {
  std::vector<Signalled> found;
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    for (const auto& [unique, call] : shard.calls) {
      if (call.had_signal) found.push_back({unique, call.thread});
    }
  }
  return found;
}

void FuseCalls::interrupt(std::uint64_t unique) {
  std::shared_ptr<Cancellation> found;
  {
    Shard& shard = this->shard(unique);
    MutexLock lock(shard.mutex);
    const auto call = shard.calls.find(unique);
    if (call == shard.calls.end()) return;
    found = call->second.cancellation;
  }
  found->request();  // May answer, and so come back here.
}

void FuseCalls::interrupt_all() {
  std::vector<std::shared_ptr<Cancellation>> found;
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    for (const auto& [unique, call] : shard.calls)
      found.push_back(call.cancellation);
  }
  for (const auto& cancellation : found)
    cancellation->request();
}

std::size_t FuseCalls::size() {
  std::size_t calls = 0;
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    calls += shard.calls.size();
  }
  return calls;
}

}  // namespace millrace
