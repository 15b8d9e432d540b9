#include "frontends/nfs4/nfs_session_memory.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "frontends/nfs4/nfs_client.h"
#include "frontends/nfs4/nfs_session.h"

namespace millrace {

std::uint32_t NfsSessionMemory::take_slots(std::uint32_t wanted, std::uint32_t at_least) {
  MutexLock lock(mutex_);
  const std::uint32_t left = options_.slots_max - std::min(slots_, options_.slots_max);
  const std::uint32_t taken = std::max(at_least, std::min(wanted, left));
  slots_ += taken;
  return taken;
}

void NfsSessionMemory::give_back_slots(std::uint32_t slots) {
  MutexLock lock(mutex_);
  slots_ -= slots;
}

void NfsSessionMemory::add(NfsSession& session) {
  MutexLock lock(mutex_);
  sessions_.insert(&session);
}

void NfsSessionMemory::remove(NfsSession& session) {
  MutexLock lock(mutex_);
  sessions_.erase(&session);
}

bool NfsSessionMemory::charge_replies(std::int64_t bytes) {
  const auto change = static_cast<std::uint64_t>(bytes);
  return reply_bytes_.fetch_add(change, std::memory_order_relaxed) + change >
             options_.reply_bytes_max &&
         bytes > 0;
}

void NfsSessionMemory::trim(TimePoint now) {
  MutexLock lock(mutex_);
  if (reply_bytes() <= options_.reply_bytes_max) return;
  struct Candidate {
    bool present;
    TimePoint used;
    NfsSession* session;
  };
  std::vector<Candidate> candidates;
  for (NfsSession* session : sessions_)
    candidates.push_back(
        {now < session->client().renewed() + options_.lease, session->used(), session});
  std::ranges::sort(candidates, {}, [](const Candidate& candidate) {
    return std::tuple(candidate.present, candidate.used);
  });
  // Some room is made at once, so that not every reply that follows sorts all sessions.
  const std::uint64_t goal = options_.reply_bytes_max - options_.reply_bytes_max / 4;
  for (const Candidate& candidate : candidates) {
    if (reply_bytes() <= goal) break;
    candidate.session->drop_replies();
  }
}

std::uint32_t NfsSessionMemory::slots() const {
  MutexLock lock(mutex_);
  return slots_;
}

}  // namespace millrace
