#include "frontends/nfs4/nfs_session_memory.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "frontends/nfs4/nfs_client.h"
#include "frontends/nfs4/nfs_session.h"

namespace millrace {

// Without the lock, which trim() holds while it takes those of sessions: they call this with theirs
// held.
std::uint32_t NfsSessionMemory::take_slots(std::uint32_t wanted, std::uint32_t at_least) {
  std::uint32_t taken = 0;
  std::uint32_t before = slots_.load(std::memory_order_relaxed);
  do {
    const std::uint32_t left = options_.slots_max - std::min(before, options_.slots_max);
    taken = std::max(at_least, std::min(wanted, left));
  } while (!slots_.compare_exchange_weak(before, before + taken, std::memory_order_relaxed));
  return taken;
}

void NfsSessionMemory::give_back_slots(std::uint32_t slots) {
  slots_.fetch_sub(slots, std::memory_order_relaxed);
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

}  // namespace millrace
