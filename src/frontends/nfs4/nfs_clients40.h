#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "frontends/nfs4/nfs_client.h"
#include "frontends/nfs4/nfs_client_ids.h"
#include "frontends/nfs4/nfs_reclaimers.h"
#include "frontends/nfs4/nfs_state_options.h"

namespace millrace {

struct NfsSetClientIdAnswer {
  NfsClientId client;
  NfsVerifier confirm;
};

// The clients of 4.0 (RFC 7530, 16.33 to 16.34), which have no sessions. Nothing is called back, so
// what a client says of callbacks is not kept.
//
// Invariants:
//  1. An owner has at most one confirmed client and one pending SETCLIENTID. Only
//     SETCLIENTID_CONFIRM makes a new instance take the old one's place.
//  2. The rest as of NfsClients: what is on the disk, who is forgotten when.
//
// All methods are safe from any thread. confirm, and what forgets clients, may wait for the disk.
class NfsClients40 {
 public:
  NfsClients40(NfsClientIds& ids, NfsReclaimers& reclaimers, NfsFileTables& files, Clock& clock,
               Random& random);

  // kClidInUse when another principal's client of this name has opens.
  NfsResult<NfsSetClientIdAnswer> set_client_id(const NfsClientOwner& owner,
                                                const std::string& principal) MR_EXCLUDES(mutex_);
  // kStaleClientId, kClidInUse; kResource when there are too many clients.
  NfsStatus confirm(NfsClientId client, const NfsVerifier& verifier, const std::string& principal)
      MR_EXCLUDES(mutex_);

  // The client, whose lease is renewed. kStaleClientId, kExpired when we forgot it.
  NfsResult<std::shared_ptr<NfsClient>> find(NfsClientId client) MR_EXCLUDES(mutex_);
  // By a stateid of an open or a lock. kStaleStateid, kExpired, kBadStateid.
  NfsResult<std::shared_ptr<NfsClient>> find(const NfsStateid& stateid) MR_EXCLUDES(mutex_);
  // Whether the stateid, special ones included, allows this access to the node.
  NfsStatus check(const NfsStateid& stateid, NodeNumber node, std::uint32_t access)
      MR_EXCLUDES(mutex_);

  std::size_t drop_gone() MR_EXCLUDES(mutex_);
  void sweep() MR_EXCLUDES(mutex_);
  std::vector<NfsClientInfo> list() const MR_EXCLUDES(mutex_);

 private:
  // A SETCLIENTID that waits for its confirmation.
  struct Pending {
    NfsClientOwner owner;
    std::string principal;
    NfsClientId client;
    NfsVerifier confirm;
    TimePoint made;
  };
  struct Record {
    std::shared_ptr<NfsClient> client;
    NfsVerifier confirm;
  };
  using Clients = std::map<NfsClientId, Record>;

  NfsVerifier make_verifier();
  // By owner: the confirmed client. Null when there is none.
  Record* confirmed_of(const std::string& owner) MR_REQUIRES(mutex_);
  Pending* pending_of(NfsClientId client, const NfsVerifier& verifier) MR_REQUIRES(mutex_);
  NfsStatus replace(const Pending& pending) MR_REQUIRES(mutex_);
  Clients::iterator forget(Clients::iterator client) MR_REQUIRES(mutex_);
  std::size_t drop_older_than(Duration age) MR_EXCLUDES(mutex_);
  bool make_room() MR_REQUIRES(mutex_);

  NfsClientIds& ids_;
  NfsReclaimers& reclaimers_;
  NfsFileTables& files_;
  Clock& clock_;
  Random& random_;

  mutable Mutex mutex_;
  Clients clients_ MR_GUARDED_BY(mutex_);
  std::map<std::string, NfsClientId> by_owner_ MR_GUARDED_BY(mutex_);
  std::map<std::string, Pending> pending_ MR_GUARDED_BY(mutex_);  // By owner.
};

}  // namespace millrace
