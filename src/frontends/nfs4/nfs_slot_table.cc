#include "frontends/nfs4/nfs_slot_table.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace millrace {

NfsResult<NfsSlotTable::Verdict> NfsSlotTable::begin(const NfsSlotCall& call) {
  if (call.slot >= limit_) return std::unexpected(NfsStatus::kBadSlot);
  if (call.slot >= slots_.size()) {
    if (call.sequence != 1) return std::unexpected(NfsStatus::kSeqMisordered);
    slots_.resize(call.slot + 1);
  }
  Slot& slot = slots_[call.slot];
  if (call.sequence == slot.sequence && slot.state != Slot::kUnused) {
    if (slot.state == Slot::kRunning) return std::unexpected(NfsStatus::kDelay);
    if (call.fingerprint != slot.fingerprint) return std::unexpected(NfsStatus::kSeqFalseRetry);
    return Verdict::kRetry;
  }
  if (call.sequence != slot.sequence + 1 || slot.state == Slot::kRunning)
    return std::unexpected(NfsStatus::kSeqMisordered);
  slot.sequence = call.sequence;
  slot.fingerprint = call.fingerprint;
  slot.state = Slot::kRunning;
  drop_reply(slot);
  return Verdict::kRun;
}

void NfsSlotTable::finish(std::uint32_t slot, std::shared_ptr<const std::string> reply) {
  assert(slot < slots_.size() && slots_[slot].state == Slot::kRunning);
  slots_[slot].state = Slot::kAnswered;
  if (reply != nullptr) reply_bytes_ += reply->size();
  slots_[slot].reply = std::move(reply);
}

std::shared_ptr<const std::string> NfsSlotTable::reply(std::uint32_t slot) const {
  return slot < slots_.size() ? slots_[slot].reply : nullptr;
}

void NfsSlotTable::raise_limit(std::uint32_t slots) { limit_ = std::max(limit_, slots); }

void NfsSlotTable::drop_replies() {
  for (Slot& slot : slots_)
    drop_reply(slot);
}

void NfsSlotTable::drop_reply(Slot& slot) {
  if (slot.reply == nullptr) return;
  reply_bytes_ -= slot.reply->size();
  slot.reply.reset();
}

}  // namespace millrace
