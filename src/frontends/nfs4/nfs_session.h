#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "frontends/nfs4/nfs_session_memory.h"
#include "frontends/nfs4/nfs_slot_table.h"
#include "frontends/nfs4/nfs_state_numbers.h"
#include "frontends/nfs4/nfs_types.h"

namespace millrace {

class NfsClient;

// SEQUENCE, and what else of its COMPOUND decides whether it runs.
struct NfsSequenceRequest {
  NfsSlotCall call;
  bool cache_this = false;
  std::uint32_t operations = 0;  // Of the COMPOUND, SEQUENCE included.
  std::uint32_t request_bytes = 0;
};

struct NfsSequenceAnswer {
  std::uint32_t highest_slot = 0;
  std::uint32_t target_highest_slot = 0;
  std::uint32_t status_flags = 0;
};

// A request that was answered before. Without a reply, which was not to be kept or had to go: the
// answer to SEQUENCE, then kRetryUncachedRep for the next operation, if there is one.
struct NfsRetry {
  NfsSequenceAnswer answer;
  std::shared_ptr<const std::string> reply;
};

class NfsSlotUse;

// Both channels, as CREATE_SESSION agreed on them.
struct NfsSessionTerms {
  NfsChannelAttributes fore;
  NfsChannelAttributes back;
  std::uint32_t callback_program = 0;
  std::uint32_t minor_version = 1;  // Callbacks are of the same.
  // The client asked for callbacks on its connections.
  bool wants_callbacks = false;
};

// One session of a client. Any connection may carry its requests, since nobody who would bind them
// proves who they are; only those that carry callbacks are remembered.
//
// Made by NfsClients, which ends it; whoever still holds it can finish requests, and begin none.
// All methods are safe from any thread.
class NfsSession : public std::enable_shared_from_this<NfsSession> {
 public:
  // How many connections for callbacks are remembered; the oldest gives way.
  static constexpr std::size_t kBoundConnectionsMax = 64;

  NfsSession(NfsSessionId id, std::shared_ptr<NfsClient> client, const NfsSessionTerms& terms,
             NfsSessionMemory& memory, Clock& clock);
  ~NfsSession();
  NfsSession(const NfsSession&) = delete;
  NfsSession& operator=(const NfsSession&) = delete;

  const NfsSessionId& id() const { return id_; }
  NfsClient& client() const { return *client_; }
  const NfsSessionTerms& terms() const { return terms_; }
  TimePoint used() const { return used_.load(std::memory_order_relaxed); }

  // Starts a request, or finds its reply; both renew the client's lease. Fails with what SEQUENCE
  // answers; then nothing has changed.
  NfsResult<std::variant<NfsSlotUse, NfsRetry>> begin(const NfsSequenceRequest& request)
      MR_EXCLUDES(mutex_);

  // Lets the connection carry callbacks too, or no longer, as asked; returns what it carries now.
  NfsChannel bind(NfsConnectionId connection, NfsChannelWish wish) MR_EXCLUDES(mutex_);
  void unbind(NfsConnectionId connection) MR_EXCLUDES(mutex_);
  // The connection for callbacks that was bound last; nothing when the client has left none.
  std::optional<NfsConnectionId> back_channel() const MR_EXCLUDES(mutex_);

  // The number of the next callback on the one slot that there is for them. Nothing while one is
  // under way: its end_callback() then says that another was wanted.
  std::optional<std::uint32_t> begin_callback() MR_EXCLUDES(mutex_);
  // `counted`: the client has answered it, so that the next one gets the next number.
  bool end_callback(bool counted) MR_EXCLUDES(mutex_);

  void end() MR_EXCLUDES(mutex_);
  void drop_replies() MR_EXCLUDES(mutex_);

 private:
  friend class NfsSlotUse;
  void finish(std::uint32_t slot, std::shared_ptr<const std::string> reply) MR_EXCLUDES(mutex_);
  void grow(std::uint32_t slot) MR_REQUIRES(mutex_);
  NfsSequenceAnswer answer() const MR_REQUIRES(mutex_);

  const NfsSessionId id_;
  const std::shared_ptr<NfsClient> client_;
  const NfsSessionTerms terms_;
  NfsSessionMemory& memory_;
  Clock& clock_;
  std::atomic<TimePoint> used_;

  mutable Mutex mutex_;
  bool ended_ MR_GUARDED_BY(mutex_) = false;
  NfsSlotTable slots_ MR_GUARDED_BY(mutex_);
  std::vector<NfsConnectionId> back_connections_ MR_GUARDED_BY(mutex_);
  std::uint32_t next_callback_ MR_GUARDED_BY(mutex_) = 1;
  bool calls_back_ MR_GUARDED_BY(mutex_) = false;
  bool calls_back_again_ MR_GUARDED_BY(mutex_) = false;
};

// A request that runs. Ends with finish(), or by destruction: then a retry hears that the reply was
// not kept. Move-only; needs one thread at a time.
class NfsSlotUse {
 public:
  enum class Keeping : std::uint8_t {
    kNo,
    kIfItFits,
    kMust,  // The client has asked for it: a reply that does not fit is kRepTooBigToCache.
  };

  NfsSlotUse(std::shared_ptr<NfsSession> session, std::uint32_t slot, Keeping keeping,
             NfsSequenceAnswer answer);
  NfsSlotUse(NfsSlotUse&&) noexcept = default;
  NfsSlotUse& operator=(NfsSlotUse&&) = delete;
  ~NfsSlotUse();

  NfsSession& session() const { return *session_; }
  const NfsSequenceAnswer& answer() const { return answer_; }
  // Whether finish() keeps the reply, if it has at most the session's cached_response_bytes_max.
  bool keeps_reply() const { return keeping_ != Keeping::kNo; }
  bool must_keep_reply() const { return keeping_ == Keeping::kMust; }

  // `reply` is the whole result of the COMPOUND, without the head of the RPC. May be called once.
  void finish(std::string_view reply);

 private:
  std::shared_ptr<NfsSession> session_;  // Null when finished or moved from.
  std::uint32_t slot_;
  Keeping keeping_;
  NfsSequenceAnswer answer_;
};

}  // namespace millrace
