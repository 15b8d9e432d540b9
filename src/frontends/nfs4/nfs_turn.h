#pragma once

#include <functional>
#include <memory>

#include "frontends/nfs4/nfs_client.h"
#include "frontends/nfs4/nfs_compound.h"
#include "frontends/nfs4/nfs_owner_turns.h"

namespace millrace {

// Whose state an operation is about: the session's client, or in 4.0 the one that was given the
// stateid, or that has this id. Kept as long as the result; the call counts as that client's.
NfsResult<std::shared_ptr<NfsClient>> client_of(NfsCompound& call, const NfsStateid& stateid);
NfsResult<std::shared_ptr<NfsClient>> client_of(NfsCompound& call, NfsClientId sent);

// Runs an operation of an owner, and writes its answer. In 4.0 that is done in the owner's turn,
// which `begin` takes: a retry is answered as the first time, with the same current file handle.
// Elsewhere slots do that, and the turn is null.
NfsStatus run_in_turn(NfsCompound& call,
                      const std::function<NfsResult<NfsOwnerTurns::Begun>()>& begin,
                      const std::function<NfsStatus(NfsOwnerTurn* turn)>& operation);

}  // namespace millrace
