#include "frontends/nfs4/nfs_client_files.h"

namespace millrace {

NfsResult<NfsClientFiles::LockStates::iterator> NfsClientFiles::find_lock_state(
    const NfsStateid& stateid, NodeNumber node) {
  const NfsResult<NfsStateidParts> parts = parts_of(stateid);
  if (!parts) return std::unexpected(parts.error());
  const auto found = lock_states_.find(parts->number);
  if (parts->kind != NfsStateKind::kLock || found == lock_states_.end() ||
      found->second.node != node) {
    return std::unexpected(NfsStatus::kBadStateid);
  }
  const NfsStatus status = compare_seqid(stateid.seqid, found->second.seqid, has_sessions_);
  if (status != NfsStatus::kOk) return std::unexpected(status);
  return found;
}

NfsResult<NfsLockOwner> NfsClientFiles::lock_owner(const std::string& name) {
  if (const auto found = lock_owners_.find(name); found != lock_owners_.end()) {
    if (NfsLockOwner owner = found->second.lock()) return owner;
  }
  if (lock_owners_.size() >= tables_.options.owners_per_client_max)
    return std::unexpected(NfsStatus::kDelay);
  auto owner = std::make_shared<const NfsStateOwner>(client_, name);
  lock_owners_[name] = owner;
  return owner;
}

void NfsClientFiles::drop_lock_state(LockStates::iterator state) {
  const NfsLockOwner owner = state->second.owner;
  // What is given up whole never needs a lock more.
  (void)tables_.locks.unlock(state->second.node, {0, UINT64_MAX}, owner);
  lock_states_by_owner_.erase(std::pair(owner.get(), state->second.node));
  --opens_.find(state->second.open)->second.lock_states;
  lock_states_.erase(state);
  const auto left = lock_states_by_owner_.lower_bound(std::pair(owner.get(), NodeNumber(0)));
  if (left == lock_states_by_owner_.end() || left->first.first != owner.get())
    lock_owners_.erase(owner->owner);
}

NfsResult<NfsClientFiles::LockStates::iterator> NfsClientFiles::lock_state_for(
    const NfsLockRequest& request) {
  if (!request.new_owner) return find_lock_state(request.stateid, request.node);
  const NfsResult<Opens::iterator> open = find_open(request.stateid, request.node);
  if (!open) return std::unexpected(open.error());
  const NfsResult<NfsLockOwner> owner = lock_owner(*request.new_owner);
  if (!owner) return std::unexpected(owner.error());
  const auto key = std::pair(owner->get(), request.node);
  if (const auto known = lock_states_by_owner_.find(key); known != lock_states_by_owner_.end())
    return lock_states_.find(known->second);
  if (lock_states_.size() >= tables_.options.opens_per_client_max) {
    if (owner->use_count() == 1) lock_owners_.erase(*request.new_owner);
    return std::unexpected(NfsStatus::kDelay);
  }
  const std::uint32_t number = ++last_number_;
  lock_states_by_owner_.emplace(key, number);
  ++(*open)->second.lock_states;
  return lock_states_
      .emplace(number, LockState{.open = (*open)->first, .node = request.node, .owner = *owner})
      .first;
}

std::expected<NfsStateid, NfsLockFailure> NfsClientFiles::lock(const NfsLockRequest& request) {
  MutexLock guard(mutex_);
  const NfsResult<LockStates::iterator> found = lock_state_for(request);
  if (!found) return std::unexpected(NfsLockFailure{found.error()});
  LockState& state = (*found)->second;
  NfsLockFailure failure;
  const Open& open = opens_.find(state.open)->second;
  const std::uint32_t needed = request.exclusive ? kShareAccessWrite : kShareAccessRead;
  if ((open.share.access & needed) == 0) {
    failure.status = NfsStatus::kOpenMode;
  } else {
    NfsResult<std::optional<NfsRangeLock>> taken = tables_.locks.lock(
        request.node,
        {.range = request.range, .exclusive = request.exclusive, .owner = state.owner});
    if (!taken) {
      failure.status = taken.error();
    } else if (*taken) {
      failure = {.status = NfsStatus::kDenied, .denied = *std::move(taken)};
    }
  }
  if (failure.status != NfsStatus::kOk) {
    // A state that was made for this request has never been told to anybody.
    if (state.seqid == 0) drop_lock_state(*found);
    return std::unexpected(failure);
  }
  state.seqid = next_seqid(state.seqid);
  return stateid_of(NfsStateKind::kLock, (*found)->first, state.seqid);
}

std::optional<NfsRangeLock> NfsClientFiles::test_lock(const std::string& owner, NodeNumber node,
                                                      NfsRange range, bool exclusive) const {
  NfsLockOwner known;
  {
    MutexLock lock(mutex_);
    const auto found = lock_owners_.find(owner);
    if (found != lock_owners_.end()) known = found->second.lock();
  }
  return tables_.locks.conflict(node, {.range = range, .exclusive = exclusive, .owner = known});
}

NfsResult<NfsStateid> NfsClientFiles::unlock(const NfsStateid& stateid, NodeNumber node,
                                             NfsRange range) {
  MutexLock lock(mutex_);
  const NfsResult<LockStates::iterator> found = find_lock_state(stateid, node);
  if (!found) return std::unexpected(found.error());
  LockState& state = (*found)->second;
  if (const NfsStatus status = tables_.locks.unlock(node, range, state.owner);
      status != NfsStatus::kOk) {
    return std::unexpected(status);
  }
  state.seqid = next_seqid(state.seqid);
  return stateid_of(NfsStateKind::kLock, (*found)->first, state.seqid);
}

NfsStatus NfsClientFiles::free(const NfsStateid& stateid) {
  // It is in use until DELEGRETURN, as far as anybody here knows.
  if (tables_.delegations.check(client_, stateid) == NfsStatus::kOk) return NfsStatus::kLocksHeld;
  MutexLock lock(mutex_);
  const Open* open = nullptr;
  if (const NfsStatus status = look_up(stateid, open); status != NfsStatus::kOk) return status;
  const NfsStateidParts parts = *parts_of(stateid);
  if (parts.kind == NfsStateKind::kOpen) return NfsStatus::kLocksHeld;
  const auto state = lock_states_.find(parts.number);
  if (tables_.locks.holds_any(state->second.node, state->second.owner))
    return NfsStatus::kLocksHeld;
  drop_lock_state(state);
  return NfsStatus::kOk;
}

}  // namespace millrace
