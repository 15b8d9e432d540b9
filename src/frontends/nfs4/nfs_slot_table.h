#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontends/nfs4/nfs_types.h"

namespace millrace {

// A request's place in its session, as SEQUENCE gives it.
struct NfsSlotCall {
  std::uint32_t slot = 0;
  std::uint32_t sequence = 0;
  // Of what the request asks for: tells a retry from another request under the same number.
  std::uint64_t fingerprint = 0;
};

// The slots of a session: which requests have run, and the replies of those that may be asked for
// again.
//
// Invariants:
//  1. A request runs at most once: its number is its slot's plus one, and the slot takes that
//     number before it runs. A slot starts at 0, and numbers wrap around.
//  2. A slot runs one request at a time.
//  3. A refused request changes nothing.
//  4. A reply is kept until its slot runs the next request, or drop_replies() takes it. Then its
//     retry is known as one, and does not run.
//
// Needs one thread at a time.
class NfsSlotTable {
 public:
  explicit NfsSlotTable(std::uint32_t slots) : limit_(slots) {}

  enum class Verdict : std::uint8_t { kRun, kRetry };
  // kRun: end it with finish(). kRetry: reply() has the answer, if it was kept. Fails with
  // kBadSlot, kSeqMisordered, kSeqFalseRetry, or kDelay while the request still runs.
  NfsResult<Verdict> begin(const NfsSlotCall& call);
  // Ends what runs in the slot. A null reply is one that is not kept.
  void finish(std::uint32_t slot, std::shared_ptr<const std::string> reply);
  // Of the slot's last request; null when it was not kept.
  std::shared_ptr<const std::string> reply(std::uint32_t slot) const;

  // How many slots a client may use. They are made when first used.
  std::uint32_t limit() const { return limit_; }
  void raise_limit(std::uint32_t slots);

  std::uint64_t reply_bytes() const { return reply_bytes_; }
  void drop_replies();

 private:
  struct Slot {
    std::uint64_t fingerprint = 0;
    std::shared_ptr<const std::string> reply;
    std::uint32_t sequence = 0;
    enum : std::uint8_t { kUnused, kRunning, kAnswered } state = kUnused;
  };

  void drop_reply(Slot& slot);

  std::uint32_t limit_;
  std::vector<Slot> slots_;
  std::uint64_t reply_bytes_ = 0;
};

}  // namespace millrace
