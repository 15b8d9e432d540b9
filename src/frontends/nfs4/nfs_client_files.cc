#include "frontends/nfs4/nfs_client_files.h"

namespace millrace {

std::optional<NfsStatus> check_special_stateid(const NfsFileTables& tables,
                                               const NfsStateid& stateid, NodeNumber node,
                                               std::uint32_t access) {
  if (stateid == bypass_stateid() && access == kShareAccessRead) return NfsStatus::kOk;
  if (stateid != kAnonymousStateid && stateid != bypass_stateid()) return std::nullopt;
  return tables.shares.denies(node, access) ? NfsStatus::kLocked : NfsStatus::kOk;
}

NfsClientFiles::NfsClientFiles(NfsClientId client, bool has_sessions, NfsFileTables& tables)
    : client_(client), has_sessions_(has_sessions), tables_(tables) {}

NfsClientFiles::~NfsClientFiles() { clear(); }

NfsStateid NfsClientFiles::stateid_of(NfsStateKind kind, std::uint32_t number,
                                      std::uint32_t seqid) const {
  return make_stateid({.kind = kind,
                       .mark = tables_.life,
                       .client = static_cast<std::uint32_t>(client_.value()),
                       .number = number},
                      seqid);
}

NfsResult<NfsStateidParts> NfsClientFiles::parts_of(const NfsStateid& stateid) const {
  const std::optional<NfsStateidParts> parts = parse_stateid(stateid);
  if (!parts || parts->kind == NfsStateKind::kDelegation)
    return std::unexpected(NfsStatus::kBadStateid);
  if (parts->mark != (tables_.life & kStateMarkMask)) {
    return std::unexpected(has_sessions_ ? NfsStatus::kBadStateid : NfsStatus::kStaleStateid);
  }
  if (parts->client != static_cast<std::uint32_t>(client_.value()))
    return std::unexpected(NfsStatus::kBadStateid);
  return *parts;
}

NfsResult<NfsClientFiles::Opens::iterator> NfsClientFiles::find_open(const NfsStateid& stateid,
                                                                     NodeNumber node) {
  const NfsResult<NfsStateidParts> parts = parts_of(stateid);
  if (!parts) return std::unexpected(parts.error());
  const auto found = opens_.find(parts->number);
  if (parts->kind != NfsStateKind::kOpen || found == opens_.end() || found->second.node != node)
    return std::unexpected(NfsStatus::kBadStateid);
  const NfsStatus status = compare_seqid(stateid.seqid, found->second.seqid, has_sessions_);
  if (status != NfsStatus::kOk) return std::unexpected(status);
  return found;
}

NfsStatus NfsClientFiles::look_up(const NfsStateid& stateid, const Open*& open) const {
  const NfsResult<NfsStateidParts> parts = parts_of(stateid);
  if (!parts) return parts.error();
  std::uint32_t number = parts->number;
  std::uint32_t newest = 0;
  if (parts->kind == NfsStateKind::kLock) {
    const auto state = lock_states_.find(number);
    if (state == lock_states_.end()) return NfsStatus::kBadStateid;
    newest = state->second.seqid;
    number = state->second.open;
  }
  const auto found = opens_.find(number);
  if (found == opens_.end()) return NfsStatus::kBadStateid;
  if (parts->kind == NfsStateKind::kOpen) newest = found->second.seqid;
  open = &found->second;
  return compare_seqid(stateid.seqid, newest, has_sessions_);
}

NfsStatus NfsClientFiles::widen(Open& open, NfsShare share, NfsShares& shares) {
  const NfsShare wider{.access = open.share.access | share.access,
                       .deny = open.share.deny | share.deny};
  const NfsStatus status = shares.change(open.node, open.share, wider);
  if (status != NfsStatus::kOk) return status;
  open.share = wider;
  open.accesses_seen |= static_cast<std::uint8_t>(1U << share.access);
  open.denials_seen |= static_cast<std::uint8_t>(1U << share.deny);
  return NfsStatus::kOk;
}

NfsStatus NfsClientFiles::add_open(Owners::iterator owner, const NfsOpenRequest& request,
                                   std::uint32_t number) {
  if (opens_.size() >= tables_.options.opens_per_client_max) return NfsStatus::kDelay;
  Open open{.owner = owner, .node = request.node, .share = {}};
  if (const NfsStatus status = widen(open, request.share, tables_.shares);
      status != NfsStatus::kOk) {
    return status;
  }
  opens_.emplace(number, open);
  opens_by_owner_.emplace(std::pair(&owner->first, request.node), number);
  ++owner->second;
  return NfsStatus::kOk;
}

NfsResult<NfsStateid> NfsClientFiles::open(const NfsOpenRequest& request) {
  MutexLock lock(mutex_);
  auto owner = owners_.find(request.owner);
  if (owner == owners_.end()) {
    if (owners_.size() >= tables_.options.owners_per_client_max)
      return std::unexpected(NfsStatus::kDelay);
    owner = owners_.emplace(request.owner, 0).first;
  }
  const auto known = opens_by_owner_.find(std::pair(&owner->first, request.node));
  if (known != opens_by_owner_.end()) {
    Open& open = opens_.find(known->second)->second;
    if (const NfsStatus status = widen(open, request.share, tables_.shares);
        status != NfsStatus::kOk) {
      return std::unexpected(status);
    }
    open.seqid = next_seqid(open.seqid);
    return stateid_of(NfsStateKind::kOpen, known->second, open.seqid);
  }
  const std::uint32_t number = ++last_number_;
  const NfsStatus status = add_open(owner, request, number);
  if (status == NfsStatus::kOk) return stateid_of(NfsStateKind::kOpen, number, 1);
  if (owner->second == 0) owners_.erase(owner);
  return std::unexpected(status);
}

NfsResult<NfsStateid> NfsClientFiles::downgrade(const NfsStateid& stateid, NodeNumber node,
                                                NfsShare share) {
  MutexLock lock(mutex_);
  const NfsResult<Opens::iterator> found = find_open(stateid, node);
  if (!found) return std::unexpected(found.error());
  Open& open = (*found)->second;
  if (share.access == 0 || share.access > kShareAccessBoth || share.deny > kShareDenyBoth ||
      (open.accesses_seen >> share.access & 1) == 0 || (open.denials_seen >> share.deny & 1) == 0) {
    return std::unexpected(NfsStatus::kInval);
  }
  // Takes nothing that it did not have, so nobody can be in the way.
  const NfsStatus status = tables_.shares.change(node, open.share, share);
  if (status != NfsStatus::kOk) return std::unexpected(status);
  open.share = share;
  for (std::uint32_t bits = 0; bits <= kShareAccessBoth; ++bits) {
    const auto bit = static_cast<std::uint8_t>(1U << bits);
    if ((bits & ~share.access) != 0) open.accesses_seen &= static_cast<std::uint8_t>(~bit);
    if ((bits & ~share.deny) != 0) open.denials_seen &= static_cast<std::uint8_t>(~bit);
  }
  open.seqid = next_seqid(open.seqid);
  return stateid_of(NfsStateKind::kOpen, (*found)->first, open.seqid);
}

NfsResult<NfsStateid> NfsClientFiles::close(const NfsStateid& stateid, NodeNumber node) {
  MutexLock lock(mutex_);
  const NfsResult<Opens::iterator> found = find_open(stateid, node);
  if (!found) return std::unexpected(found.error());
  const auto& [number, open] = **found;
  const NfsStateid closed = has_sessions_
                                ? kInvalidStateid
                                : stateid_of(NfsStateKind::kOpen, number, next_seqid(open.seqid));
  drop_open(*found);
  return closed;
}

void NfsClientFiles::drop_open(Opens::iterator found) {
  const auto& [number, open] = *found;
  for (auto state = lock_states_.begin(); open.lock_states > 0;) {
    const auto here = state++;
    if (here->second.open == number) drop_lock_state(here);
  }
  // What takes nothing is in nobody's way.
  (void)tables_.shares.change(open.node, open.share, {});
  opens_by_owner_.erase(std::pair(&open.owner->first, open.node));
  if (--open.owner->second == 0) owners_.erase(open.owner);
  opens_.erase(found);
}

NfsStatus NfsClientFiles::check(const NfsStateid& stateid, NodeNumber node,
                                std::uint32_t access) const {
  if (const auto status = check_special_stateid(tables_, stateid, node, access)) return *status;
  if (const auto parts = parse_stateid(stateid);
      parts && parts->kind == NfsStateKind::kDelegation) {
    if (parts->node() != node) return NfsStatus::kBadStateid;
    if (access != kShareAccessRead) return NfsStatus::kOpenMode;
    return tables_.delegations.check(client_, stateid);
  }
  MutexLock lock(mutex_);
  const Open* open = nullptr;
  if (const NfsStatus status = look_up(stateid, open); status != NfsStatus::kOk) return status;
  if (open->node != node) return NfsStatus::kBadStateid;
  return (open->share.access & access) == access ? NfsStatus::kOk : NfsStatus::kOpenMode;
}

NfsStatus NfsClientFiles::test(const NfsStateid& stateid) const {
  if (tables_.delegations.check(client_, stateid) == NfsStatus::kOk) return NfsStatus::kOk;
  MutexLock lock(mutex_);
  const Open* open = nullptr;
  return look_up(stateid, open);
}

NfsStateid NfsClientFiles::delegation(NodeNumber node) const {
  return tables_.delegations.stateid(client_, node);
}

NfsStatus NfsClientFiles::return_delegation(const NfsStateid& stateid, NodeNumber node) const {
  const NfsStatus status = tables_.delegations.check(client_, stateid);
  if (status != NfsStatus::kOk) return status;
  return parse_stateid(stateid)->node() == node ? NfsStatus::kOk : NfsStatus::kBadStateid;
}

bool NfsClientFiles::empty() const { return opens() == 0; }

std::size_t NfsClientFiles::opens() const {
  MutexLock lock(mutex_);
  return opens_.size();
}

void NfsClientFiles::clear() {
  MutexLock lock(mutex_);
  while (!opens_.empty())
    drop_open(opens_.begin());
}

}  // namespace millrace
