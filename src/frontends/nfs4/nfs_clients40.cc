#include "frontends/nfs4/nfs_clients40.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace millrace {

NfsClients40::NfsClients40(NfsClientIds& ids, NfsReclaimers& reclaimers, NfsFileTables& files,
                           Clock& clock, Random& random)
    : ids_(ids), reclaimers_(reclaimers), files_(files), clock_(clock), random_(random) {}

NfsVerifier NfsClients40::make_verifier() {
  std::array<std::byte, 8> bytes;
  const std::uint64_t number = random_.next() | 1;  // Never zero.
  std::memcpy(bytes.data(), &number, bytes.size());
  return NfsVerifier(bytes);
}

NfsClients40::Record* NfsClients40::confirmed_of(const std::string& owner) {
  const auto found = by_owner_.find(owner);
  return found == by_owner_.end() ? nullptr : &clients_.find(found->second)->second;
}

NfsClients40::Pending* NfsClients40::pending_of(NfsClientId client, const NfsVerifier& verifier) {
  const auto found = std::ranges::find_if(pending_, [&](const auto& entry) {
    return entry.second.client == client && entry.second.confirm == verifier;
  });
  if (found == pending_.end()) return nullptr;
  if (clock_.now() - found->second.made <= files_.options.lease) return &found->second;
  pending_.erase(found);
  return nullptr;
}

NfsResult<NfsSetClientIdAnswer> NfsClients40::set_client_id(const NfsClientOwner& owner,
                                                            const std::string& principal) {
  MutexLock lock(mutex_);
  const Record* const known = confirmed_of(owner.id);
  if (known != nullptr && known->client->principal() != principal &&
      !known->client->files().empty() &&
      clock_.now() - known->client->renewed() <= files_.options.lease) {
    log_warn("two NFS clients have the same name", {{"client", owner.id}});
    return std::unexpected(NfsStatus::kClidInUse);
  }
  // The same instance again: new callbacks, and nothing else changes.
  const bool same = known != nullptr && known->client->owner().verifier == owner.verifier &&
                    known->client->principal() == principal;
  if (!pending_.contains(owner.id) && pending_.size() >= files_.options.unconfirmed_clients_max) {
    pending_.erase(std::ranges::min_element(pending_, {},
                                            [](const auto& entry) { return entry.second.made; }));
  }
  const Pending& pending =
      pending_
          .insert_or_assign(owner.id, Pending{.owner = owner,
                                              .principal = principal,
                                              .client = same ? known->client->id() : ids_.next(),
                                              .confirm = make_verifier(),
                                              .made = clock_.now()})
          .first->second;
  return NfsSetClientIdAnswer{pending.client, pending.confirm};
}

NfsStatus NfsClients40::confirm(NfsClientId client, const NfsVerifier& verifier,
                                const std::string& principal) {
  std::optional<std::string> owner;
  {
    MutexLock lock(mutex_);
    const Pending* const pending = pending_of(client, verifier);
    if (pending != nullptr && pending->principal == principal) owner = pending->owner.id;
  }
  // Outside the lock, for it waits for the disk.
  if (owner) reclaimers_.record(*owner);
  MutexLock lock(mutex_);
  if (const Pending* const pending = pending_of(client, verifier)) {
    if (pending->principal != principal) return NfsStatus::kClidInUse;
    return replace(*pending);
  }
  const auto found = clients_.find(client);
  if (found == clients_.end() || found->second.confirm != verifier)
    return NfsStatus::kStaleClientId;
  return found->second.client->principal() == principal ? NfsStatus::kOk : NfsStatus::kClidInUse;
}

NfsStatus NfsClients40::replace(const Pending& pending) {
  const std::string owner = pending.owner.id;
  if (Record* const same = confirmed_of(owner); same != nullptr) {
    if (same->client->id() == pending.client) {
      same->confirm = pending.confirm;
      same->client->renew(clock_.now());
      pending_.erase(owner);
      return NfsStatus::kOk;
    }
    forget(clients_.find(same->client->id()));
  } else if (clients_.size() >= files_.options.clients_max && !make_room()) {
    return NfsStatus::kResource;
  }
  const auto client = std::make_shared<NfsClient>(pending.client, pending.owner, pending.principal,
                                                  0, files_, clock_.now());
  if (reclaimers_.take(owner)) client->allow_reclaim();
  clients_.emplace(pending.client, Record{client, pending.confirm});
  by_owner_[owner] = pending.client;
  pending_.erase(owner);
  return NfsStatus::kOk;
}

NfsClients40::Clients::iterator NfsClients40::forget(Clients::iterator client) {
  client->second.client->files().clear();
  by_owner_.erase(client->second.client->owner().id);
  return clients_.erase(client);
}

bool NfsClients40::make_room() {
  const auto oldest = std::ranges::min_element(
      clients_, {}, [](const auto& entry) { return entry.second.client->renewed(); });
  if (oldest == clients_.end() ||
      clock_.now() - oldest->second.client->renewed() <= files_.options.lease) {
    return false;
  }
  reclaimers_.add(oldest->second.client->owner().id);
  forget(oldest);
  return true;
}

NfsResult<std::shared_ptr<NfsClient>> NfsClients40::find(NfsClientId client) {
  MutexLock lock(mutex_);
  const auto found = clients_.find(client);
  if (found == clients_.end()) {
    return std::unexpected(ids_.knows(client) ? NfsStatus::kExpired : NfsStatus::kStaleClientId);
  }
  found->second.client->renew(clock_.now());
  return found->second.client;
}

NfsResult<std::shared_ptr<NfsClient>> NfsClients40::find(const NfsStateid& stateid) {
  if (stateid.other == kAnonymousStateid.other || stateid.other == bypass_stateid().other)
    return std::unexpected(NfsStatus::kBadStateid);
  const std::optional<NfsStateidParts> parts = parse_stateid(stateid);
  // What this life has not made, an earlier one has.
  if (!parts ||
      (parts->kind != NfsStateKind::kDelegation && parts->mark != (ids_.life() & kStateMarkMask))) {
    return std::unexpected(NfsStatus::kStaleStateid);
  }
  if (parts->kind == NfsStateKind::kDelegation) return std::unexpected(NfsStatus::kBadStateid);
  NfsResult<std::shared_ptr<NfsClient>> client = find(ids_.of_count(parts->client));
  if (!client && client.error() == NfsStatus::kStaleClientId)
    return std::unexpected(NfsStatus::kBadStateid);
  return client;
}

NfsStatus NfsClients40::check(const NfsStateid& stateid, NodeNumber node, std::uint32_t access) {
  if (const auto status = check_special_stateid(files_, stateid, node, access)) return *status;
  const NfsResult<std::shared_ptr<NfsClient>> client = find(stateid);
  if (!client) return client.error();
  return (*client)->files().check(stateid, node, access);
}

std::size_t NfsClients40::drop_older_than(Duration age) {
  MutexLock lock(mutex_);
  const TimePoint now = clock_.now();
  std::erase_if(pending_,
                [&](const auto& entry) { return now - entry.second.made > files_.options.lease; });
  std::size_t dropped = 0;
  for (auto it = clients_.begin(); it != clients_.end();) {
    if (now - it->second.client->renewed() <= age) {
      ++it;
      continue;
    }
    reclaimers_.add(it->second.client->owner().id);
    it = forget(it);
    ++dropped;
  }
  return dropped;
}

std::size_t NfsClients40::drop_gone() { return drop_older_than(files_.options.lease); }

void NfsClients40::sweep() { drop_older_than(files_.options.lease + files_.options.courtesy); }

std::vector<NfsClientInfo> NfsClients40::list() const {
  MutexLock lock(mutex_);
  std::vector<NfsClientInfo> infos;
  for (const auto& [id, record] : clients_)
    infos.push_back(record.client->info(clock_.now()));
  return infos;
}

}  // namespace millrace
