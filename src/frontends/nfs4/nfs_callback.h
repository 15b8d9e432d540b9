#pragma once

#include <memory>

#include "frontends/nfs4/nfs_compound.h"
#include "frontends/nfs4/nfs_session.h"

namespace millrace {

// Asks the client to give back all delegations that it can do without (CB_RECALL_ANY): which it has
// is not known here. On the connection's loop.
void recall_nfs_delegations(const std::shared_ptr<RpcConnection>& connection,
                            const std::shared_ptr<NfsSession>& session);

// Asks the client, as soon as this COMPOUND is answered, whether callbacks reach it over this
// connection. One that they do not reach carries none from then on: the client hears of that, and
// gets no delegations, which nobody could take back.
void probe_nfs_callbacks(NfsCompound& call, const std::shared_ptr<NfsSession>& session);

}  // namespace millrace
