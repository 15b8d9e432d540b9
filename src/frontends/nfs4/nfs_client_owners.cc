#include <vector>

#include "frontends/nfs4/nfs_client_files.h"

namespace millrace {

NfsResult<NfsStateid> NfsClientFiles::confirm(const NfsStateid& stateid, NodeNumber node) {
  MutexLock lock(mutex_);
  const NfsResult<Opens::iterator> found = find_open(stateid, node);
  if (!found) return std::unexpected(found.error());
  Open& open = (*found)->second;
  open.seqid = next_seqid(open.seqid);
  return stateid_of(NfsStateKind::kOpen, (*found)->first, open.seqid);
}

NfsResult<NfsOwnerName> NfsClientFiles::owner_of(const NfsStateid& stateid) const {
  const NfsResult<NfsStateidParts> parts = parts_of(stateid);
  if (!parts) return std::unexpected(parts.error());
  MutexLock lock(mutex_);
  if (parts->kind == NfsStateKind::kOpen) {
    const auto open = opens_.find(parts->number);
    if (open == opens_.end()) return std::unexpected(NfsStatus::kBadStateid);
    return NfsOwnerName{.locks = false, .name = open->second.owner->first};
  }
  const auto state = lock_states_.find(parts->number);
  if (state == lock_states_.end()) return std::unexpected(NfsStatus::kBadStateid);
  return NfsOwnerName{.locks = true, .name = state->second.owner->owner};
}

bool NfsClientFiles::has_owner(const NfsOwnerName& owner) const {
  MutexLock lock(mutex_);
  return owner.locks ? lock_owners_.contains(owner.name) : owners_.contains(owner.name);
}

void NfsClientFiles::drop_owner(const std::string& owner) {
  MutexLock lock(mutex_);
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return;
  const std::string* const name = &found->first;
  // The last one takes the name with it.
  for (std::uint32_t left = found->second; left > 0; --left) {
    const auto open = opens_by_owner_.lower_bound(std::pair(name, NodeNumber(0)));
    drop_open(opens_.find(open->second));
  }
}

NfsStatus NfsClientFiles::release_lock_owner(const std::string& owner) {
  MutexLock lock(mutex_);
  const auto found = lock_owners_.find(owner);
  const NfsLockOwner known = found == lock_owners_.end() ? nullptr : found->second.lock();
  if (known == nullptr) return NfsStatus::kOk;
  std::vector<LockStates::iterator> states;
  for (auto it = lock_states_by_owner_.lower_bound(std::pair(known.get(), NodeNumber(0)));
       it != lock_states_by_owner_.end() && it->first.first == known.get(); ++it) {
    if (tables_.locks.holds_any(it->first.second, known)) return NfsStatus::kLocksHeld;
    states.push_back(lock_states_.find(it->second));
  }
  for (const LockStates::iterator state : states)
    drop_lock_state(state);
  return NfsStatus::kOk;
}

}  // namespace millrace
