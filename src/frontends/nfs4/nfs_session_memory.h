#pragma once

#include <atomic>
#include <cstdint>
#include <set>

#include "base/clock.h"
#include "base/mutex.h"
#include "frontends/nfs4/nfs_state_options.h"

namespace millrace {

class NfsSession;

// What all sessions together may hold: slots, and the replies that they keep.
//
// Invariants:
//  1. More slots than the limit are handed out only to sessions that have none: each gets one.
//  2. After trim() the kept replies take at most the limit. Sessions lose theirs whole: first those
//     of gone clients, then those that were used longest ago, since a client that has sent another
//     request has most likely had its replies.
//
// All methods are safe from any thread. Outlives its sessions.
class NfsSessionMemory {
 public:
  explicit NfsSessionMemory(const NfsStateOptions& options) : options_(options) {}

  // Returns how many of the wanted slots there are: at least `at_least`.
  std::uint32_t take_slots(std::uint32_t wanted, std::uint32_t at_least);
  void give_back_slots(std::uint32_t slots);

  void add(NfsSession& session) MR_EXCLUDES(mutex_);
  void remove(NfsSession& session) MR_EXCLUDES(mutex_);

  // Says that kept replies have grown, or shrunk. Returns whether there are too many: then the
  // caller calls trim(), holding no session's lock.
  bool charge_replies(std::int64_t bytes);
  void trim(TimePoint now) MR_EXCLUDES(mutex_);

  std::uint64_t reply_bytes() const { return reply_bytes_.load(std::memory_order_relaxed); }
  std::uint32_t slots() const { return slots_.load(std::memory_order_relaxed); }

 private:
  const NfsStateOptions options_;
  std::atomic<std::uint64_t> reply_bytes_ = 0;

  Mutex mutex_;
  std::atomic<std::uint32_t> slots_ = 0;
  std::set<NfsSession*> sessions_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
