#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/random.h"
#include "frontends/nfs4/nfs_session.h"
#include "frontends/nfs4/nfs_types.h"

namespace millrace {

// All sessions, found by their ids, and the connections that carry their callbacks.
//
// Every request asks here, so that the sessions are spread over several locks. All methods are safe
// from any thread.
class NfsSessionTable {
 public:
  // A connection carries callbacks of at most so many sessions.
  static constexpr std::size_t kSessionsPerConnectionMax = 64;

  // An id that nobody can guess: it is all that a request must know to use the session.
  static NfsSessionId make_id(NfsClientId client, Random& random);

  void add(std::shared_ptr<NfsSession> session);
  // Ends the session. Nothing when there is none.
  std::shared_ptr<NfsSession> remove(const NfsSessionId& id);
  // Null when there is none.
  std::shared_ptr<NfsSession> find(const NfsSessionId& id) const;
  std::size_t size() const;

  // Connections are announced, so that a request that comes after the end of its own binds nothing.
  void connection_opened(NfsConnectionId connection) MR_EXCLUDES(bindings_mutex_);
  // BIND_CONN_TO_SESSION. Returns what the connection carries from now on.
  NfsChannel bind(NfsSession& session, NfsConnectionId connection, NfsChannelWish wish)
      MR_EXCLUDES(bindings_mutex_);
  void connection_closed(NfsConnectionId connection) MR_EXCLUDES(bindings_mutex_);

 private:
  struct Shard {
    mutable Mutex mutex;
    std::map<NfsSessionId, std::shared_ptr<NfsSession>> sessions MR_GUARDED_BY(mutex);
  };
  static constexpr std::size_t kShards = 16;

  Shard& shard_of(const NfsSessionId& id);
  const Shard& shard_of(const NfsSessionId& id) const;

  std::array<Shard, kShards> shards_;

  Mutex bindings_mutex_;
  std::map<NfsConnectionId, std::vector<std::weak_ptr<NfsSession>>> bindings_
      MR_GUARDED_BY(bindings_mutex_);
};

}  // namespace millrace
