#include "frontends/nfs4/nfs_session.h"

#include <algorithm>
#include <utility>

#include "frontends/nfs4/nfs_client.h"

namespace millrace {
namespace {

// Status, tag, and the one result of a COMPOUND of nothing but SEQUENCE. A session that cannot keep
// this much keeps no reply.
constexpr std::uint32_t kSequenceReplyBytes = 12 + 44;

}  // namespace

NfsSession::NfsSession(NfsSessionId id, std::shared_ptr<NfsClient> client,
                       const NfsSessionTerms& terms, NfsSessionMemory& memory, Clock& clock)
    : id_(id),
      client_(std::move(client)),
      terms_(terms),
      memory_(memory),
      clock_(clock),
      used_(clock.now()),
      slots_(terms.fore.requests_max) {
  memory_.add(*this);
}

NfsSession::~NfsSession() {
  memory_.remove(*this);
  drop_replies();
  MutexLock lock(mutex_);
  memory_.give_back_slots(slots_.limit());
}

NfsResult<std::variant<NfsSlotUse, NfsRetry>> NfsSession::begin(const NfsSequenceRequest& request) {
  if (request.operations > terms_.fore.operations_max)
    return std::unexpected(NfsStatus::kTooManyOps);
  if (request.request_bytes > terms_.fore.request_bytes_max)
    return std::unexpected(NfsStatus::kReqTooBig);
  if (request.cache_this && terms_.fore.cached_response_bytes_max < kSequenceReplyBytes)
    return std::unexpected(NfsStatus::kRepTooBigToCache);
  const TimePoint now = clock_.now();
  const std::uint32_t slot = request.call.slot;

  MutexLock lock(mutex_);
  if (ended_) return std::unexpected(NfsStatus::kBadSession);
  const std::uint64_t kept_before = slots_.reply_bytes();
  const NfsResult<NfsSlotTable::Verdict> verdict = slots_.begin(request.call);
  if (!verdict) return std::unexpected(verdict.error());
  memory_.charge_replies(-static_cast<std::int64_t>(kept_before - slots_.reply_bytes()));
  used_.store(now, std::memory_order_relaxed);
  client_->renew(now);
  if (*verdict == NfsSlotTable::Verdict::kRetry) return NfsRetry{answer(), slots_.reply(slot)};
  grow(slot);
  // What is nothing but a SEQUENCE is kept too: there is no second operation to refuse.
  using enum NfsSlotUse::Keeping;
  const NfsSlotUse::Keeping keeping = request.cache_this        ? kMust
                                      : request.operations == 1 ? kIfItFits
                                                                : kNo;
  return NfsSlotUse(shared_from_this(), slot, keeping, answer());
}

void NfsSession::finish(std::uint32_t slot, std::shared_ptr<const std::string> reply) {
  bool too_many = false;
  {
    MutexLock lock(mutex_);
    if (reply != nullptr)
      too_many = memory_.charge_replies(static_cast<std::int64_t>(reply->size()));
    slots_.finish(slot, std::move(reply));
  }
  if (too_many) memory_.trim(clock_.now());
}

// A client uses its lowest free slot, so one near the limit says that nearly all are in use.
void NfsSession::grow(std::uint32_t slot) {
  const std::uint32_t limit = slots_.limit();
  if (slot < limit - limit / 4 - 1 || limit >= kNfsSlotsMax) return;
  slots_.raise_limit(limit + memory_.take_slots(std::min(limit, kNfsSlotsMax - limit), 0));
}

NfsSequenceAnswer NfsSession::answer() const {
  std::uint32_t flags = 0;
  if (terms_.wants_callbacks && back_connections_.empty()) {
    flags |= kSequenceCbPathDownSession;
    if (client_->back_channels() == 0) flags |= kSequenceCbPathDown;
  }
  return {.highest_slot = slots_.limit() - 1,
          .target_highest_slot = slots_.limit() - 1,
          .status_flags = flags};
}

NfsChannel NfsSession::bind(NfsConnectionId connection, NfsChannelWish wish) {
  MutexLock lock(mutex_);
  const auto known = std::ranges::find(back_connections_, connection);
  if (wish == NfsChannelWish::kFore) {
    if (known != back_connections_.end()) {
      back_connections_.erase(known);
      client_->add_back_channels(-1);
    }
    return NfsChannel::kFore;
  }
  if (ended_) return NfsChannel::kFore;
  if (known != back_connections_.end()) {
    std::rotate(known, known + 1, back_connections_.end());
  } else {
    if (back_connections_.size() == kBoundConnectionsMax) {
      back_connections_.erase(back_connections_.begin());
      client_->add_back_channels(-1);
    }
    back_connections_.push_back(connection);
    client_->add_back_channels(1);
  }
  return wish == NfsChannelWish::kBack ? NfsChannel::kBack : NfsChannel::kBoth;
}

void NfsSession::unbind(NfsConnectionId connection) {
  MutexLock lock(mutex_);
  client_->add_back_channels(-static_cast<int>(std::erase(back_connections_, connection)));
}

std::optional<NfsConnectionId> NfsSession::back_channel() const {
  MutexLock lock(mutex_);
  if (back_connections_.empty()) return std::nullopt;
  return back_connections_.back();
}

std::optional<std::uint32_t> NfsSession::begin_callback() {
  MutexLock lock(mutex_);
  if (std::exchange(calls_back_, true)) {
    calls_back_again_ = true;
    return std::nullopt;
  }
  return next_callback_;
}

bool NfsSession::end_callback(bool counted) {
  MutexLock lock(mutex_);
  calls_back_ = false;
  if (counted) ++next_callback_;
  return std::exchange(calls_back_again_, false);
}

void NfsSession::end() {
  drop_replies();
  MutexLock lock(mutex_);
  ended_ = true;
  client_->add_back_channels(-static_cast<int>(back_connections_.size()));
  back_connections_.clear();
}

void NfsSession::drop_replies() {
  MutexLock lock(mutex_);
  memory_.charge_replies(-static_cast<std::int64_t>(slots_.reply_bytes()));
  slots_.drop_replies();
}

NfsSlotUse::NfsSlotUse(std::shared_ptr<NfsSession> session, std::uint32_t slot, Keeping keeping,
                       NfsSequenceAnswer answer)
    : session_(std::move(session)), slot_(slot), keeping_(keeping), answer_(answer) {}

NfsSlotUse::~NfsSlotUse() {
  if (session_ != nullptr) session_->finish(slot_, nullptr);
}

void NfsSlotUse::finish(std::string_view reply) {
  const std::shared_ptr<NfsSession> session = std::exchange(session_, nullptr);
  const bool keeps =
      keeps_reply() && reply.size() <= session->terms().fore.cached_response_bytes_max;
  session->finish(slot_, keeps ? std::make_shared<const std::string>(reply) : nullptr);
}

}  // namespace millrace
