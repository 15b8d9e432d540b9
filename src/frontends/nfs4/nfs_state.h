#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "frontends/nfs4/nfs_client_ids.h"
#include "frontends/nfs4/nfs_client_records.h"
#include "frontends/nfs4/nfs_clients.h"
#include "frontends/nfs4/nfs_clients40.h"
#include "frontends/nfs4/nfs_server_identity.h"
#include "frontends/nfs4/nfs_session_memory.h"
#include "frontends/nfs4/nfs_state_options.h"
#include "platform/disk.h"

namespace millrace {

// All that one server remembers of its clients, without sockets and without XDR. A server has one,
// with a folder of its own: who serves under two leases has two.
//
// All methods, and those of the parts, are safe from any thread. Disk, clock and random outlive it;
// it outlives the sessions that were found in it.
class NfsState {
 public:
  // Makes the folder when absent. Fails as the disk does, and with kCorruption for files that are
  // not ours. Blocks.
  static Result<std::unique_ptr<NfsState>> open(Disk& disk, const std::string& folder,
                                                const NfsStateOptions& options, Clock& clock,
                                                Random& random);

  const NfsServerIdentity& identity() const { return identity_; }
  const NfsStateOptions& options() const { return options_; }
  const NfsSessionMemory& session_memory() const { return session_memory_; }
  NfsClients& clients() { return clients_; }
  NfsClients40& clients40() { return clients40_; }
  NfsSessionTable& sessions() { return clients_.sessions(); }
  const NfsFileTables& files() const { return files_; }

  // As those of the client's files, but when another client is in the way that is gone, it loses
  // its state. kGrace and kNoGrace where the client has, or has not, something to reclaim first.
  NfsResult<NfsStateid> open_file(NfsClient& client, const NfsOpenRequest& request);
  std::expected<NfsStateid, NfsLockFailure> lock_file(NfsClient& client,
                                                      const NfsLockRequest& request);

  // Of all versions.
  std::vector<NfsClientInfo> list_clients() const;

  // Forgets what has outlived its time. To be called every minute or so; may wait for the disk.
  void sweep();

 private:
  NfsState(NfsServerIdentity identity, std::unique_ptr<NfsClientRecords> records,
           std::unique_ptr<NfsClientRecords> records40, const NfsStateOptions& options,
           Clock& clock, Random& random);
  bool drop_gone();

  const NfsStateOptions options_;
  const NfsServerIdentity identity_;
  const std::unique_ptr<NfsClientRecords> records_;
  const std::unique_ptr<NfsClientRecords> records40_;
  NfsReclaimers reclaimers_;
  NfsReclaimers reclaimers40_;
  NfsClientIds client_ids_;
  NfsSessionMemory session_memory_;
  NfsFileTables files_;
  NfsClients clients_;
  NfsClients40 clients40_;
};

}  // namespace millrace
