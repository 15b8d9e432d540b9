#include "frontends/nfs4/nfs_callback.h"
#include "frontends/nfs4/nfs_operations.h"
#include "frontends/nfs4/nfs_state_numbers.h"

namespace millrace {

NfsStatus nfs_destroy_session(NfsCompound& call) {
  const NfsSessionId session(call.arguments().fixed_array<16>());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  // The session that carries the request can only be ended at its end.
  const bool own = call.slot() != nullptr && call.slot()->session().id() == session;
  if (own && call.index() + 1 != call.operations()) return NfsStatus::kNotOnlyOp;
  return call.service().state.clients().destroy_session(session);
}

NfsStatus nfs_destroy_clientid(NfsCompound& call) {
  const NfsClientId client(call.arguments().u64());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  return call.service().state.clients().destroy_client(client);
}

NfsStatus nfs_bind_conn_to_session(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  const NfsSessionId id(reader.fixed_array<16>());
  const auto wish = reader.enumeration<NfsChannelWish>();
  reader.boolean();  // RDMA, which there is none of.
  if (!reader.ok()) return NfsStatus::kBadXdr;
  switch (wish) {
    case NfsChannelWish::kFore:
    case NfsChannelWish::kBack:
    case NfsChannelWish::kForeOrBoth:
    case NfsChannelWish::kBackOrBoth:
      break;
    default:
      return NfsStatus::kBadXdr;
  }
  NfsSessionTable& sessions = call.service().state.sessions();
  const std::shared_ptr<NfsSession> session = sessions.find(id);
  if (session == nullptr) return NfsStatus::kBadSession;
  const NfsChannel channel = sessions.bind(*session, call.connection().id(), wish);
  if (channel != NfsChannel::kFore) probe_nfs_callbacks(call, session);
  call.results().fixed(id.value());
  call.results().enumeration(channel);
  call.results().boolean(false);
  return NfsStatus::kOk;
}

}  // namespace millrace
