#include "frontends/nfs4/nfs_owner_turns.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

// Longer answers do not exist: the longest is that of a LOCK that an owner of 1024 bytes denies.
constexpr std::size_t kOwnerReplyBytesMax = 4096;

// RFC 7530, 9.1.7: those after which the number is still to be used.
bool takes_number(NfsStatus status) {
  switch (status) {
    case NfsStatus::kStaleClientId:
    case NfsStatus::kStaleStateid:
    case NfsStatus::kBadStateid:
    case NfsStatus::kBadSeqid:
    case NfsStatus::kBadXdr:
    case NfsStatus::kResource:
    case NfsStatus::kNoFileHandle:
    case NfsStatus::kMoved:
      return false;
    default:
      return true;
  }
}

}  // namespace

NfsResult<NfsOwnerTurns::Owners::iterator> NfsOwnerTurns::find(const NfsStateid& stateid) {
  const NfsResult<NfsOwnerName> name = files_.owner_of(stateid);
  if (name) {
    const auto found = owners_.find(*name);
    if (found == owners_.end()) return std::unexpected(NfsStatus::kBadStateid);
    return found;
  }
  const std::optional<NfsStateidParts> parts = parse_stateid(stateid);
  if (name.error() != NfsStatus::kBadStateid || !parts || parts->kind != NfsStateKind::kOpen)
    return std::unexpected(name.error());
  // Perhaps a CLOSE that is retried.
  const auto closed = std::ranges::find_if(
      owners_, [&](const auto& entry) { return entry.second.closed == parts->number; });
  if (parts->number == 0 || closed == owners_.end()) return std::unexpected(NfsStatus::kBadStateid);
  return closed;
}

NfsResult<NfsOwnerTurns::Begun> NfsOwnerTurns::take_turn(Owners::iterator found,
                                                         std::uint32_t sequence) {
  Owner& owner = found->second;
  if (owner.running) return std::unexpected(NfsStatus::kDelay);
  if (sequence == owner.sequence && !owner.reply.empty()) return owner.reply;
  if (sequence != owner.sequence + 1) return std::unexpected(NfsStatus::kBadSeqid);
  owner.running = true;
  owner.used = ++uses_;
  return NfsOwnerTurn(*this, found->first, sequence, owner.confirmed);
}

NfsResult<NfsOwnerTurns::Begun> NfsOwnerTurns::begin_open(const std::string& owner,
                                                          std::uint32_t sequence) {
  MutexLock lock(mutex_);
  const NfsOwnerName name{.locks = false, .name = owner};
  auto found = owners_.find(name);
  if (found == owners_.end()) {
    if (owners_.size() >= owners_max_ && !make_room()) return std::unexpected(NfsStatus::kResource);
    found = owners_.emplace(name, Owner()).first;
  }
  if (!found->second.confirmed && !found->second.running) {
    files_.drop_owner(owner);
    found->second = {.sequence = sequence - 1};
  }
  return take_turn(found, sequence);
}

NfsResult<NfsOwnerTurns::Begun> NfsOwnerTurns::begin_confirm(const NfsStateid& stateid,
                                                             std::uint32_t sequence) {
  MutexLock lock(mutex_);
  const NfsResult<Owners::iterator> found = find(stateid);
  if (!found) return std::unexpected(found.error());
  const Owner& owner = (*found)->second;
  // With the number of the last operation it is a retry, of whatever was confirmed by it.
  if ((*found)->first.locks || (owner.confirmed && sequence == owner.sequence + 1))
    return std::unexpected(NfsStatus::kBadStateid);
  return take_turn(*found, sequence);
}

NfsResult<NfsOwnerTurns::Begun> NfsOwnerTurns::begin(const NfsStateid& stateid,
                                                     std::uint32_t sequence) {
  MutexLock lock(mutex_);
  const NfsResult<Owners::iterator> found = find(stateid);
  if (!found) return std::unexpected(found.error());
  if (!(*found)->first.locks && !(*found)->second.confirmed)
    return std::unexpected(NfsStatus::kBadStateid);
  return take_turn(*found, sequence);
}

void NfsOwnerTurns::start_lock_owner(const std::string& owner, std::uint32_t sequence) {
  MutexLock lock(mutex_);
  const NfsOwnerName name{.locks = true, .name = owner};
  // The lock is there already: one owner more than allowed is better than a lock without.
  if (!owners_.contains(name) && owners_.size() >= owners_max_) make_room();
  owners_[name] = {.sequence = sequence, .confirmed = true, .used = ++uses_};
}

NfsStatus NfsOwnerTurns::release_lock_owner(const std::string& owner) {
  const NfsStatus status = files_.release_lock_owner(owner);
  if (status != NfsStatus::kOk) return status;
  MutexLock lock(mutex_);
  const auto found = owners_.find({.locks = true, .name = owner});
  if (found != owners_.end() && !found->second.running) owners_.erase(found);
  return NfsStatus::kOk;
}

bool NfsOwnerTurns::make_room() {
  auto oldest = owners_.end();
  for (auto it = owners_.begin(); it != owners_.end(); ++it) {
    if (it->second.running || files_.has_owner(it->first)) continue;
    if (oldest == owners_.end() || it->second.used < oldest->second.used) oldest = it;
  }
  if (oldest == owners_.end()) return false;
  owners_.erase(oldest);
  return true;
}

void NfsOwnerTurns::finish(const NfsOwnerName& name, std::uint32_t sequence, NfsStatus status,
                           std::string_view reply) {
  MutexLock lock(mutex_);
  const auto found = owners_.find(name);
  if (found == owners_.end()) return;
  found->second.running = false;
  if (!takes_number(status)) return;
  found->second.sequence = sequence;
  found->second.reply = reply.substr(0, kOwnerReplyBytesMax);
}

void NfsOwnerTurns::confirm(const NfsOwnerName& name) {
  MutexLock lock(mutex_);
  if (const auto found = owners_.find(name); found != owners_.end()) found->second.confirmed = true;
}

void NfsOwnerTurns::note_closed(const NfsOwnerName& name, const NfsStateid& stateid) {
  MutexLock lock(mutex_);
  const std::optional<NfsStateidParts> parts = parse_stateid(stateid);
  if (const auto found = owners_.find(name); found != owners_.end() && parts)
    found->second.closed = parts->number;
}

NfsOwnerTurn::NfsOwnerTurn(NfsOwnerTurn&& other) noexcept
    : turns_(std::exchange(other.turns_, nullptr)),
      owner_(std::move(other.owner_)),
      sequence_(other.sequence_),
      confirmed_(other.confirmed_) {}

NfsOwnerTurn::~NfsOwnerTurn() {
  if (turns_ != nullptr) turns_->finish(owner_, sequence_, NfsStatus::kResource, {});
}

void NfsOwnerTurn::confirm() {
  turns_->confirm(owner_);
  confirmed_ = true;
}

void NfsOwnerTurn::note_closed(const NfsStateid& stateid) { turns_->note_closed(owner_, stateid); }

void NfsOwnerTurn::finish(NfsStatus status, std::string_view reply) {
  std::exchange(turns_, nullptr)->finish(owner_, sequence_, status, reply);
}

}  // namespace millrace
