#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/mutex.h"
#include "frontends/nfs4/nfs_client_files.h"
#include "frontends/nfs4/nfs_types.h"

namespace millrace {

class NfsOwnerTurn;

// What 4.0 has instead of sessions: every owner numbers its operations, and the answer to the last
// one is kept for a retry (RFC 7530, 9.1.7).
//
// Invariants:
//  1. An owner has one operation at a time. Its number is the owner's plus one, or whatever the
//     owner begins with.
//  2. An operation that fails as if it had never come (kBadStateid and the like) takes no number.
//  3. An owner of opens is unconfirmed until OPEN_CONFIRM; until then its next OPEN begins anew,
//  and
//     nothing else finds it.
//  4. Owners are bounded: one that has no open, or no lock, gives way, used longest ago first.
//
// All methods are safe from any thread. The files outlive it.
class NfsOwnerTurns {
 public:
  // A turn, or the answer that was kept.
  using Begun = std::variant<NfsOwnerTurn, std::string>;

  NfsOwnerTurns(NfsClientFiles& files, std::size_t owners_max)
      : files_(files), owners_max_(owners_max) {}

  // OPEN. kBadSeqid; kDelay while another runs; kResource when there are too many owners.
  NfsResult<Begun> begin_open(const std::string& owner, std::uint32_t sequence) MR_EXCLUDES(mutex_);
  // OPEN_CONFIRM. kBadStateid when there is nothing to confirm.
  NfsResult<Begun> begin_confirm(const NfsStateid& stateid, std::uint32_t sequence)
      MR_EXCLUDES(mutex_);
  // All others, which name their owner by a stateid; that of the last CLOSE still counts.
  NfsResult<Begun> begin(const NfsStateid& stateid, std::uint32_t sequence) MR_EXCLUDES(mutex_);
  // The first LOCK of a lock owner, within the turn of the owner of the open, has this number.
  void start_lock_owner(const std::string& owner, std::uint32_t sequence) MR_EXCLUDES(mutex_);
  // RELEASE_LOCKOWNER. kLocksHeld.
  NfsStatus release_lock_owner(const std::string& owner) MR_EXCLUDES(mutex_);

 private:
  friend class NfsOwnerTurn;
  struct Owner {
    std::uint32_t sequence = 0;
    bool confirmed = false;
    bool running = false;
    std::string reply = {};
    std::uint64_t used = 0;
    std::uint32_t closed = 0;  // The number of the open that it closed last.
  };
  using Owners = std::map<NfsOwnerName, Owner>;

  NfsResult<Owners::iterator> find(const NfsStateid& stateid) MR_REQUIRES(mutex_);
  NfsResult<Begun> take_turn(Owners::iterator owner, std::uint32_t sequence) MR_REQUIRES(mutex_);
  bool make_room() MR_REQUIRES(mutex_);
  void finish(const NfsOwnerName& owner, std::uint32_t sequence, NfsStatus status,
              std::string_view reply) MR_EXCLUDES(mutex_);
  void confirm(const NfsOwnerName& owner) MR_EXCLUDES(mutex_);
  void note_closed(const NfsOwnerName& owner, const NfsStateid& stateid) MR_EXCLUDES(mutex_);

  NfsClientFiles& files_;
  const std::size_t owners_max_;
  Mutex mutex_;
  std::uint64_t uses_ MR_GUARDED_BY(mutex_) = 0;
  Owners owners_ MR_GUARDED_BY(mutex_);
};

// An operation of an owner that runs. Ends with finish(); destroyed before, it has taken no number.
// Move-only; needs one thread at a time. The turns outlive it.
class NfsOwnerTurn {
 public:
  NfsOwnerTurn(NfsOwnerTurns& turns, NfsOwnerName owner, std::uint32_t sequence, bool confirmed)
      : turns_(&turns), owner_(std::move(owner)), sequence_(sequence), confirmed_(confirmed) {}
  NfsOwnerTurn(NfsOwnerTurn&& other) noexcept;
  NfsOwnerTurn& operator=(NfsOwnerTurn&&) = delete;
  ~NfsOwnerTurn();

  // Whether OPEN must ask for an OPEN_CONFIRM.
  bool needs_confirmation() const { return !confirmed_; }
  // OPEN_CONFIRM has succeeded, or OPEN was a reclaim, which needs none.
  void confirm();
  // CLOSE has succeeded: a retry finds its owner by this stateid, which stands for nothing else.
  void note_closed(const NfsStateid& stateid);
  // `reply` is what the operation answered, in whatever form the caller knows again. Once.
  void finish(NfsStatus status, std::string_view reply);

 private:
  NfsOwnerTurns* turns_;  // Null when finished or moved from.
  NfsOwnerName owner_;
  std::uint32_t sequence_;
  bool confirmed_;
};

}  // namespace millrace
