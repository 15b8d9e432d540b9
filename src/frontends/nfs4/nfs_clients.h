#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "frontends/nfs4/nfs_client.h"
#include "frontends/nfs4/nfs_client_ids.h"
#include "frontends/nfs4/nfs_reclaimers.h"
#include "frontends/nfs4/nfs_session.h"
#include "frontends/nfs4/nfs_session_table.h"
#include "frontends/nfs4/nfs_state_options.h"

namespace millrace {

struct NfsExchangeRequest {
  NfsClientOwner owner;
  std::string principal;
  // EXCHGID4_FLAG_UPD_CONFIRMED_REC_A: it speaks of a client that has a session already.
  bool update = false;
};

struct NfsExchangeAnswer {
  NfsClientId client;
  // The number for the client's next CREATE_SESSION.
  std::uint32_t sequence = 0;
  bool confirmed = false;
};

struct NfsCreateSessionRequest {
  NfsClientId client;
  std::uint32_t sequence = 0;
  std::uint32_t flags = 0;
  NfsChannelAttributes fore;
  NfsChannelAttributes back;
  std::uint32_t callback_program = 0;
  std::uint32_t minor_version = 1;
  std::string principal;
  NfsConnectionId connection;
};

struct NfsCreateSessionAnswer {
  NfsSessionId session;
  std::uint32_t sequence = 0;
  std::uint32_t flags = 0;
  NfsChannelAttributes fore;
  NfsChannelAttributes back;
};

// The clients of 4.1 and 4.2, and their sessions (RFC 8881, 18.35 to 18.37, 18.50).
//
// Invariants:
//  1. An owner has at most one confirmed client and one unconfirmed. CREATE_SESSION confirms: only
//     then the client that was there before loses its sessions and its state.
//  2. A client is recorded before it is confirmed.
//  3. An unconfirmed client is forgotten after a lease, or when there are too many, oldest first.
//  4. A confirmed client is forgotten when it says so, when a new instance of it is confirmed, and
//     after its lease when there are too many clients, somebody asks (drop_gone) or the courtesy
//     ends. Those that we forgot by ourselves may reclaim.
//
// All methods are safe from any thread. create_session, and what forgets clients, may wait for the
// disk.
class NfsClients {
 public:
  NfsClients(NfsClientIds& ids, NfsReclaimers& reclaimers, NfsSessionMemory& memory,
             NfsFileTables& files, Clock& clock, Random& random);
  ~NfsClients();

  NfsResult<NfsExchangeAnswer> exchange_id(const NfsExchangeRequest& request) MR_EXCLUDES(mutex_);
  NfsResult<NfsCreateSessionAnswer> create_session(const NfsCreateSessionRequest& request)
      MR_EXCLUDES(mutex_);
  NfsStatus destroy_session(const NfsSessionId& session) MR_EXCLUDES(mutex_);
  // kClientIdBusy while it has sessions. Opens are no reason: they go with the client, and clients
  // that are told to wait here take ten seconds to unmount.
  NfsStatus destroy_client(NfsClientId client) MR_EXCLUDES(mutex_);

  NfsSessionTable& sessions() { return sessions_; }

  // Where clients have delegations.
  std::set<NfsDelegationPlace> delegated() const MR_EXCLUDES(mutex_);
  // A session of each client that has delegations in what is gone, for the callback that asks for
  // them. They count as given back.
  std::vector<std::shared_ptr<NfsSession>> take_delegated(const NfsDelegated::IsGone& is_gone)
      MR_EXCLUDES(mutex_);

  // Forgets all clients whose lease has passed. Returns how many there were.
  std::size_t drop_gone() MR_EXCLUDES(mutex_);
  // Forgets what has outlived its time; to be called now and then.
  void sweep() MR_EXCLUDES(mutex_);
  // Those that are confirmed.
  std::size_t size() const MR_EXCLUDES(mutex_);
  std::vector<NfsClientInfo> list() const MR_EXCLUDES(mutex_);

 private:
  struct Record {
    std::shared_ptr<NfsClient> client;
    bool confirmed = false;
    std::uint32_t sequence = 0;
    // To the last CREATE_SESSION that succeeded.
    std::optional<NfsCreateSessionAnswer> answer;
    std::vector<NfsSessionId> sessions;
  };
  struct OwnerRecords {
    std::optional<NfsClientId> confirmed;
    std::optional<NfsClientId> unconfirmed;
  };
  using Records = std::map<NfsClientId, Record>;
  enum class Parting : std::uint8_t { kWanted, kForced };

  bool gone(const Record& record, TimePoint now) const;
  Record* find(NfsClientId client) MR_REQUIRES(mutex_);
  Records::iterator forget(Records::iterator record, Parting parting) MR_REQUIRES(mutex_);
  NfsExchangeAnswer add_unconfirmed(const NfsExchangeRequest& request) MR_REQUIRES(mutex_);
  // The owner of the client that the request will confirm.
  std::optional<std::string> owner_to_confirm(const NfsCreateSessionRequest& request)
      MR_EXCLUDES(mutex_);
  NfsStatus confirm(Record& record) MR_REQUIRES(mutex_);
  bool make_room(TimePoint now) MR_REQUIRES(mutex_);
  NfsResult<NfsCreateSessionAnswer> add_session(Record& record,
                                                const NfsCreateSessionRequest& request)
      MR_REQUIRES(mutex_);
  std::size_t drop_older_than(Duration age) MR_EXCLUDES(mutex_);

  NfsClientIds& ids_;
  NfsReclaimers& reclaimers_;
  NfsSessionMemory& memory_;
  NfsFileTables& files_;
  const NfsStateOptions options_;
  Clock& clock_;
  Random& random_;
  NfsSessionTable sessions_;

  mutable Mutex mutex_;
  Records clients_ MR_GUARDED_BY(mutex_);
  std::map<std::string, OwnerRecords> owners_ MR_GUARDED_BY(mutex_);
  std::size_t confirmed_ MR_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
