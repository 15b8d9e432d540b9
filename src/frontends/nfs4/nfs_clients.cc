#include "frontends/nfs4/nfs_clients.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace millrace {
namespace {

constexpr std::uint32_t kSessionFlags = kSessionPersist | kSessionBackChannel | kSessionRdma;
// A call with SEQUENCE and its credentials, and the reply to it: less carries nothing.
constexpr std::uint32_t kMessageBytesMin = 128;
// CB_SEQUENCE and one more.
constexpr std::uint32_t kCallbackOperationsMin = 2;
// One callback at a time is sent in a session.
constexpr std::uint32_t kCallbacksMax = 1;

NfsStatus check_terms(const NfsCreateSessionRequest& request) {
  if ((request.flags & ~kSessionFlags) != 0) return NfsStatus::kInval;
  const NfsChannelAttributes& fore = request.fore;
  if (fore.request_bytes_max < kMessageBytesMin || fore.response_bytes_max < kMessageBytesMin)
    return NfsStatus::kTooSmall;
  if (fore.operations_max == 0 || fore.requests_max == 0) return NfsStatus::kInval;
  const NfsChannelAttributes& back = request.back;
  if (back.request_bytes_max < kMessageBytesMin || back.response_bytes_max < kMessageBytesMin ||
      back.operations_max < kCallbackOperationsMin || back.requests_max == 0) {
    return NfsStatus::kTooSmall;
  }
  return NfsStatus::kOk;
}

NfsSessionTerms agree(const NfsCreateSessionRequest& request) {
  NfsSessionTerms terms{.fore = request.fore,
                        .back = request.back,
                        .callback_program = request.callback_program,
                        .minor_version = request.minor_version,
                        .wants_callbacks = (request.flags & kSessionBackChannel) != 0};
  for (NfsChannelAttributes* const channel : {&terms.fore, &terms.back}) {
    channel->header_pad_bytes = 0;
    channel->request_bytes_max = std::min(channel->request_bytes_max, kNfsRecordBytesMax);
    channel->response_bytes_max = std::min(channel->response_bytes_max, kNfsRecordBytesMax);
    channel->cached_response_bytes_max =
        std::min(channel->cached_response_bytes_max, kNfsCachedReplyBytesMax);
    channel->operations_max = std::min(channel->operations_max, kNfsOperationsMax);
  }
  terms.fore.requests_max = std::min(terms.fore.requests_max, kNfsSlotsMax);
  terms.back.requests_max = std::min(terms.back.requests_max, kCallbacksMax);
  return terms;
}

}  // namespace

NfsClients::NfsClients(NfsClientIds& ids, NfsReclaimers& reclaimers, NfsSessionMemory& memory,
                       NfsFileTables& files, Clock& clock, Random& random)
    : ids_(ids),
      reclaimers_(reclaimers),
      memory_(memory),
      files_(files),
      options_(files.options),
      clock_(clock),
      random_(random) {}

NfsClients::~NfsClients() {
  MutexLock lock(mutex_);
  for (const auto& [id, record] : clients_) {
    for (const NfsSessionId& session : record.sessions)
      sessions_.remove(session);
  }
}

bool NfsClients::gone(const Record& record, TimePoint now) const {
  return now - record.client->renewed() > options_.lease;
}

NfsClients::Record* NfsClients::find(NfsClientId client) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return nullptr;
  if (!found->second.confirmed && gone(found->second, clock_.now())) {
    forget(found, Parting::kWanted);
    return nullptr;
  }
  return &found->second;
}

NfsClients::Records::iterator NfsClients::forget(Records::iterator found, Parting parting) {
  const Record& record = found->second;
  for (const NfsSessionId& session : record.sessions)
    sessions_.remove(session);
  record.client->files().clear();
  const std::string owner = record.client->owner().id;
  const auto of_owner = owners_.find(owner);
  if (record.confirmed) {
    --confirmed_;
    of_owner->second.confirmed.reset();
    if (parting == Parting::kForced) reclaimers_.add(owner);
  } else {
    of_owner->second.unconfirmed.reset();
  }
  if (!of_owner->second.confirmed && !of_owner->second.unconfirmed) owners_.erase(of_owner);
  return clients_.erase(found);
}

NfsExchangeAnswer NfsClients::add_unconfirmed(const NfsExchangeRequest& request) {
  if (clients_.size() - confirmed_ >= options_.unconfirmed_clients_max) {
    // Ids count up, so the first is the oldest.
    const auto oldest =
        std::ranges::find_if(clients_, [](const auto& entry) { return !entry.second.confirmed; });
    if (oldest != clients_.end()) forget(oldest, Parting::kWanted);
  }
  const NfsClientId id = ids_.next();
  owners_[request.owner.id].unconfirmed = id;
  clients_[id].client =
      std::make_shared<NfsClient>(id, request.owner, request.principal, 1, files_, clock_.now());
  return {.client = id, .sequence = 1, .confirmed = false};
}

// The numbers are those of the cases in RFC 8881, 18.35.5.
NfsResult<NfsExchangeAnswer> NfsClients::exchange_id(const NfsExchangeRequest& request) {
  MutexLock lock(mutex_);
  const auto known = owners_.find(request.owner.id);
  if (known != owners_.end() && known->second.confirmed) {
    const auto found = clients_.find(*known->second.confirmed);
    const Record& record = found->second;
    const bool same_verifier = record.client->owner().verifier == request.owner.verifier;
    const bool same_principal = record.client->principal() == request.principal;
    if (request.update && !same_principal) return std::unexpected(NfsStatus::kPerm);    // 9
    if (request.update && !same_verifier) return std::unexpected(NfsStatus::kNotSame);  // 8
    if (same_verifier && same_principal) {                                              // 2, 6
      return NfsExchangeAnswer{
          .client = record.client->id(), .sequence = record.sequence + 1, .confirmed = true};
    }
    if (!same_principal) {  // 3
      const bool holds = !record.sessions.empty() || !record.client->files().empty();
      if (holds && !gone(record, clock_.now())) {
        log_warn("two NFS clients have the same name", {{"client", request.owner.id}});
        return std::unexpected(NfsStatus::kClidInUse);
      }
      forget(found, Parting::kWanted);
    }
  } else if (request.update) {
    return std::unexpected(NfsStatus::kNoEnt);  // 7
  }
  if (const auto left = owners_.find(request.owner.id);
      left != owners_.end() && left->second.unconfirmed) {
    forget(clients_.find(*left->second.unconfirmed), Parting::kWanted);  // 4
  }
  return add_unconfirmed(request);  // 1, 5
}

std::optional<std::string> NfsClients::owner_to_confirm(const NfsCreateSessionRequest& request) {
  MutexLock lock(mutex_);
  const Record* const record = find(request.client);
  if (record == nullptr || record->confirmed || request.sequence != record->sequence + 1 ||
      record->client->principal() != request.principal) {
    return std::nullopt;
  }
  return record->client->owner().id;
}

NfsResult<NfsCreateSessionAnswer> NfsClients::create_session(
    const NfsCreateSessionRequest& request) {
  // Before its number is looked at, so that what cannot be agreed on uses none up.
  if (const NfsStatus status = check_terms(request); status != NfsStatus::kOk)
    return std::unexpected(status);
  // Outside the lock, for it waits for the disk.
  if (const std::optional<std::string> owner = owner_to_confirm(request))
    reclaimers_.record(*owner);
  MutexLock lock(mutex_);
  Record* const record = find(request.client);
  if (record == nullptr) return std::unexpected(NfsStatus::kStaleClientId);
  if (record->answer && request.sequence == record->sequence) return *record->answer;
  if (request.sequence != record->sequence + 1) return std::unexpected(NfsStatus::kSeqMisordered);
  if (!record->confirmed) {
    // No number is used up: it is the true client's.
    if (record->client->principal() != request.principal)
      return std::unexpected(NfsStatus::kClidInUse);
    if (const NfsStatus status = confirm(*record); status != NfsStatus::kOk)
      return std::unexpected(status);
  }
  NfsResult<NfsCreateSessionAnswer> answer = add_session(*record, request);
  if (answer) {
    record->sequence = request.sequence;
    record->answer = *answer;
    record->client->renew(clock_.now());
  }
  return answer;
}

NfsStatus NfsClients::confirm(Record& record) {
  const std::string owner = record.client->owner().id;
  const std::optional<NfsClientId> before = owners_[owner].confirmed;
  if (!before && confirmed_ >= options_.clients_max && !make_room(clock_.now()))
    return NfsStatus::kDelay;
  if (before) forget(clients_.find(*before), Parting::kWanted);
  owners_[owner] = {.confirmed = record.client->id(), .unconfirmed = std::nullopt};
  record.confirmed = true;
  ++confirmed_;
  if (reclaimers_.take(owner)) record.client->allow_reclaim();
  return NfsStatus::kOk;
}

bool NfsClients::make_room(TimePoint now) {
  auto oldest = clients_.end();
  for (auto it = clients_.begin(); it != clients_.end(); ++it) {
    if (!it->second.confirmed || !gone(it->second, now)) continue;
    if (oldest == clients_.end() ||
        it->second.client->renewed() < oldest->second.client->renewed()) {
      oldest = it;
    }
  }
  if (oldest == clients_.end()) return false;
  forget(oldest, Parting::kForced);
  return true;
}

NfsResult<NfsCreateSessionAnswer> NfsClients::add_session(Record& record,
                                                          const NfsCreateSessionRequest& request) {
  if (record.sessions.size() >= options_.sessions_per_client_max ||
      sessions_.size() >= options_.sessions_max) {
    return std::unexpected(NfsStatus::kNoSpc);
  }
  NfsSessionTerms terms = agree(request);
  terms.fore.requests_max = memory_.take_slots(terms.fore.requests_max, 1);
  const auto session =
      std::make_shared<NfsSession>(NfsSessionTable::make_id(record.client->id(), random_),
                                   record.client, terms, memory_, clock_);
  sessions_.add(session);
  record.sessions.push_back(session->id());
  std::uint32_t flags = 0;
  if (terms.wants_callbacks && sessions_.bind(*session, request.connection,
                                              NfsChannelWish::kForeOrBoth) == NfsChannel::kBoth) {
    flags |= kSessionBackChannel;
  }
  return NfsCreateSessionAnswer{.session = session->id(),
                                .sequence = request.sequence,
                                .flags = flags,
                                .fore = terms.fore,
                                .back = terms.back};
}

NfsStatus NfsClients::destroy_session(const NfsSessionId& session) {
  MutexLock lock(mutex_);
  const std::shared_ptr<NfsSession> removed = sessions_.remove(session);
  if (removed == nullptr) return NfsStatus::kBadSession;
  const auto found = clients_.find(removed->client().id());
  if (found != clients_.end()) std::erase(found->second.sessions, session);
  return NfsStatus::kOk;
}

NfsStatus NfsClients::destroy_client(NfsClientId client) {
  MutexLock lock(mutex_);
  const Record* const record = find(client);
  if (record == nullptr) return NfsStatus::kStaleClientId;
  if (!record->sessions.empty()) return NfsStatus::kClientIdBusy;
  const bool confirmed = record->confirmed;
  const std::string owner = record->client->owner().id;
  forget(clients_.find(client), Parting::kWanted);
  if (confirmed) reclaimers_.forget(owner);
  return NfsStatus::kOk;
}

std::size_t NfsClients::drop_gone() { return drop_older_than(options_.lease); }

std::size_t NfsClients::drop_older_than(Duration age) {
  MutexLock lock(mutex_);
  const TimePoint now = clock_.now();
  std::size_t dropped = 0;
  for (auto it = clients_.begin(); it != clients_.end();) {
    const Duration silent = now - it->second.client->renewed();
    if (silent <= (it->second.confirmed ? age : options_.lease)) {
      ++it;
      continue;
    }
    if (it->second.confirmed) ++dropped;
    it = forget(it, Parting::kForced);
  }
  return dropped;
}

void NfsClients::sweep() { drop_older_than(options_.lease + options_.courtesy); }

std::vector<NfsClientInfo> NfsClients::list() const {
  MutexLock lock(mutex_);
  std::vector<NfsClientInfo> infos;
  for (const auto& [id, record] : clients_) {
    if (!record.confirmed) continue;
    infos.push_back(record.client->info(clock_.now()));
    infos.back().sessions = record.sessions.size();
  }
  return infos;
}

std::set<NfsDelegationPlace> NfsClients::delegated() const {
  MutexLock lock(mutex_);
  std::set<NfsDelegationPlace> places;
  for (const auto& [id, record] : clients_) {
    for (const NfsDelegationPlace& place : record.client->delegated().places())
      places.insert(place);
  }
  return places;
}

std::vector<std::shared_ptr<NfsSession>> NfsClients::take_delegated(
    const NfsDelegated::IsGone& is_gone) {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<NfsSession>> holders;
  for (const auto& [id, record] : clients_) {
    if (!record.client->delegated().take(is_gone)) continue;
    for (const NfsSessionId& session_id : record.sessions) {
      std::shared_ptr<NfsSession> session = sessions_.find(session_id);
      if (session == nullptr || !session->back_channel()) continue;
      holders.push_back(std::move(session));
      break;
    }
  }
  return holders;
}

std::size_t NfsClients::size() const {
  MutexLock lock(mutex_);
  return confirmed_;
}

}  // namespace millrace
