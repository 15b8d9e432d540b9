#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "frontends/nfs4/nfs_range_locks.h"
#include "frontends/nfs4/nfs_shares.h"
#include "frontends/nfs4/nfs_state_options.h"
#include "frontends/nfs4/nfs_stateid.h"
#include "frontends/nfs4/nfs_types.h"

namespace millrace {

// What the files of all clients share.
struct NfsFileTables {
  const NfsStateOptions options;
  const std::uint32_t life;
  const NfsDelegations delegations;
  NfsShares shares{options.opens_max};
  NfsRangeLocks locks{options.locks_max};
};

// Whether one of the two special stateids allows this access to the node; nothing when it is
// neither.
std::optional<NfsStatus> check_special_stateid(const NfsFileTables& tables,
                                               const NfsStateid& stateid, NodeNumber node,
                                               std::uint32_t access);

struct NfsOpenRequest {
  std::string owner;
  NodeNumber node;
  NfsShare share;
  // CLAIM_PREVIOUS: the client had it before a restart of ours.
  bool reclaim = false;
};

struct NfsLockRequest {
  NodeNumber node;
  NfsRange range;
  bool exclusive = false;
  // Of an open, when `new_owner` names who locks; else of the lock owner's locks on this file.
  NfsStateid stateid;
  std::optional<std::string> new_owner;
  bool reclaim = false;
};

// Who opens, or who locks: two spaces of names.
struct NfsOwnerName {
  bool locks = false;
  std::string name;

  auto operator<=>(const NfsOwnerName&) const = default;
};

// A status, and with kDenied the lock that is in the way.
struct NfsLockFailure {
  NfsStatus status = NfsStatus::kOk;
  std::optional<NfsRangeLock> denied = std::nullopt;
};

// The opens and locks of one client, and what its stateids stand for.
//
// Invariants:
//  1. An owner has at most one open of a node. Opening it again widens that one.
//  2. A lock owner has at most one lock state for a node. It came from an open, and goes with it.
//  3. Every change of an open or a lock state raises its seqid by one. Only the newest is valid;
//     in 4.1 a seqid of 0 stands for it.
//  4. An owner is remembered while it has opens, or locks.
//
// A stateid of a client without sessions (4.0) that an earlier life gave out is kStaleStateid;
// elsewhere it is kBadStateid, as what is not this client's. All methods are safe from any thread.
class NfsClientFiles {
 public:
  NfsClientFiles(NfsClientId client, bool has_sessions, NfsFileTables& tables);
  ~NfsClientFiles();
  NfsClientFiles(const NfsClientFiles&) = delete;
  NfsClientFiles& operator=(const NfsClientFiles&) = delete;

  // kShareDenied, kDelay when a limit is reached.
  NfsResult<NfsStateid> open(const NfsOpenRequest& request) MR_EXCLUDES(mutex_);
  // kInval when no opens before make up that share.
  NfsResult<NfsStateid> downgrade(const NfsStateid& stateid, NodeNumber node, NfsShare share)
      MR_EXCLUDES(mutex_);
  // Gives up the open's locks too.
  NfsResult<NfsStateid> close(const NfsStateid& stateid, NodeNumber node) MR_EXCLUDES(mutex_);

  // Whether the stateid, special ones and delegations included, allows this access to the node.
  NfsStatus check(const NfsStateid& stateid, NodeNumber node, std::uint32_t access) const
      MR_EXCLUDES(mutex_);
  // TEST_STATEID and FREE_STATEID: only lock states without locks can be freed.
  NfsStatus test(const NfsStateid& stateid) const MR_EXCLUDES(mutex_);
  NfsStatus free(const NfsStateid& stateid) MR_EXCLUDES(mutex_);

  NfsStateid delegation(NodeNumber node) const;
  NfsStatus return_delegation(const NfsStateid& stateid, NodeNumber node) const;

  std::expected<NfsStateid, NfsLockFailure> lock(const NfsLockRequest& request) MR_EXCLUDES(mutex_);
  // Whether `owner` could lock: the lock that is in the way.
  std::optional<NfsRangeLock> test_lock(const std::string& owner, NodeNumber node, NfsRange range,
                                        bool exclusive) const MR_EXCLUDES(mutex_);
  NfsResult<NfsStateid> unlock(const NfsStateid& stateid, NodeNumber node, NfsRange range)
      MR_EXCLUDES(mutex_);

  // For clients without sessions, whose owners number their operations.

  // OPEN_CONFIRM: the open's stateid with the next seqid.
  NfsResult<NfsStateid> confirm(const NfsStateid& stateid, NodeNumber node) MR_EXCLUDES(mutex_);
  // Whose stateid it is, whatever its seqid.
  NfsResult<NfsOwnerName> owner_of(const NfsStateid& stateid) const MR_EXCLUDES(mutex_);
  bool has_owner(const NfsOwnerName& owner) const MR_EXCLUDES(mutex_);
  // Closes all that the owner has open.
  void drop_owner(const std::string& owner) MR_EXCLUDES(mutex_);
  // kLocksHeld; else the owner's lock states go.
  NfsStatus release_lock_owner(const std::string& owner) MR_EXCLUDES(mutex_);

  bool empty() const MR_EXCLUDES(mutex_);
  std::size_t opens() const MR_EXCLUDES(mutex_);
  // Gives up everything.
  void clear() MR_EXCLUDES(mutex_);

 private:
  using Owners = std::map<std::string, std::uint32_t>;  // To how many opens it has.
  struct Open {
    Owners::iterator owner;
    NodeNumber node;
    NfsShare share;
    // By value: which accesses and denials the opens so far had. A downgrade goes back to those.
    std::uint8_t accesses_seen = 0;
    std::uint8_t denials_seen = 0;
    std::uint32_t seqid = 1;
    std::uint32_t lock_states = 0;  // How many came from it.
  };
  struct LockState {
    std::uint32_t open = 0;  // The number of the open that it came from.
    NodeNumber node;
    NfsLockOwner owner;
    std::uint32_t seqid = 0;
  };
  using Opens = std::unordered_map<std::uint32_t, Open>;
  using LockStates = std::unordered_map<std::uint32_t, LockState>;

  NfsStateid stateid_of(NfsStateKind kind, std::uint32_t number, std::uint32_t seqid) const;
  // What a stateid of an open or a lock stands for, its seqid not looked at.
  NfsResult<NfsStateidParts> parts_of(const NfsStateid& stateid) const;
  NfsResult<Opens::iterator> find_open(const NfsStateid& stateid, NodeNumber node)
      MR_REQUIRES(mutex_);
  NfsResult<LockStates::iterator> find_lock_state(const NfsStateid& stateid, NodeNumber node)
      MR_REQUIRES(mutex_);
  // kOk when it is an open or a lock state; then `open` is the open that stands behind it.
  NfsStatus look_up(const NfsStateid& stateid, const Open*& open) const MR_REQUIRES(mutex_);
  void drop_open(Opens::iterator open) MR_REQUIRES(mutex_);
  NfsStatus add_open(Owners::iterator owner, const NfsOpenRequest& request, std::uint32_t number)
      MR_REQUIRES(mutex_);
  static NfsStatus widen(Open& open, NfsShare share, NfsShares& shares);
  // The lock state that the request changes; made when its owner is new to the file.
  NfsResult<LockStates::iterator> lock_state_for(const NfsLockRequest& request) MR_REQUIRES(mutex_);
  NfsResult<NfsLockOwner> lock_owner(const std::string& name) MR_REQUIRES(mutex_);
  void drop_lock_state(LockStates::iterator state) MR_REQUIRES(mutex_);

  const NfsClientId client_;
  const bool has_sessions_;
  NfsFileTables& tables_;

  mutable Mutex mutex_;
  std::uint32_t last_number_ MR_GUARDED_BY(mutex_) = 0;
  Owners owners_ MR_GUARDED_BY(mutex_);
  Opens opens_ MR_GUARDED_BY(mutex_);
  // The owner is told by where its name is kept.
  std::map<std::pair<const std::string*, NodeNumber>, std::uint32_t> opens_by_owner_
      MR_GUARDED_BY(mutex_);
  LockStates lock_states_ MR_GUARDED_BY(mutex_);
  std::map<std::pair<const NfsStateOwner*, NodeNumber>, std::uint32_t> lock_states_by_owner_
      MR_GUARDED_BY(mutex_);
  std::map<std::string, std::weak_ptr<const NfsStateOwner>> lock_owners_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
