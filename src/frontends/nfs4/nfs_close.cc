#include "frontends/nfs4/nfs_open_arguments.h"
#include "frontends/nfs4/nfs_operations.h"
#include "frontends/nfs4/nfs_turn.h"

namespace millrace {
namespace {

// A change of an open: its stateid, and the number that 4.0 gives it.
struct OpenChange {
  NfsStateid stateid = {};
  std::uint32_t sequence = 0;
};

// Finds the client, takes the turn, and answers with the stateid that `change` returns.
template <class Change>
NfsStatus change_open(NfsCompound& call, const OpenChange& asked, Change change) {
  const NfsResult<NfsPlace> place = call.place();
  if (!place) return place.error();
  const NfsResult<NfsStateid> stateid = call.meant(asked.stateid);
  if (!stateid) return stateid.error();
  const NfsResult<std::shared_ptr<NfsClient>> client = client_of(call, *stateid);
  if (!client) return client.error();
  return run_in_turn(
      call, [&] { return (*client)->turns().begin(*stateid, asked.sequence); },
      [&](NfsOwnerTurn* turn) {
        const NfsResult<NfsStateid> changed =
            change((*client)->files(), *stateid, place->node, turn);
        if (!changed) return changed.error();
        call.current()->stateid = *changed;
        write_nfs_stateid(call.results(), *changed);
        return NfsStatus::kOk;
      });
}

}  // namespace

NfsStatus nfs_close(NfsCompound& call) {
  OpenChange asked;
  asked.sequence = call.arguments().u32();
  asked.stateid = read_nfs_stateid(call.arguments());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  return change_open(
      call, asked,
      [](NfsClientFiles& files, const NfsStateid& stateid, NodeNumber node, NfsOwnerTurn* turn) {
        NfsResult<NfsStateid> closed = files.close(stateid, node);
        if (closed && turn != nullptr) turn->note_closed(stateid);
        return closed;
      });
}

NfsStatus nfs_open_confirm(NfsCompound& call) {
  const NfsStateid stateid = read_nfs_stateid(call.arguments());
  const std::uint32_t sequence = call.arguments().u32();
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsPlace> place = call.place();
  if (!place) return place.error();
  const NfsResult<std::shared_ptr<NfsClient>> client = client_of(call, stateid);
  if (!client) return client.error();
  return run_in_turn(
      call, [&] { return (*client)->turns().begin_confirm(stateid, sequence); },
      [&](NfsOwnerTurn* turn) {
        const NfsResult<NfsStateid> confirmed = (*client)->files().confirm(stateid, place->node);
        if (!confirmed) return confirmed.error();
        turn->confirm();
        write_nfs_stateid(call.results(), *confirmed);
        return NfsStatus::kOk;
      });
}

NfsStatus nfs_open_downgrade(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  OpenChange asked;
  asked.stateid = read_nfs_stateid(reader);
  asked.sequence = reader.u32();
  NfsShare share;
  // 4.1 may send wishes along, which mean nothing here.
  const std::uint32_t access_mask = call.minor_version() == 0 ? UINT32_MAX : kShareAccessBoth;
  share.access = reader.u32() & access_mask;
  share.deny = reader.u32();
  if (!reader.ok()) return NfsStatus::kBadXdr;
  return change_open(call, asked,
                     [share](NfsClientFiles& files, const NfsStateid& stateid, NodeNumber node,
                             NfsOwnerTurn*) -> NfsResult<NfsStateid> {
                       if (!is_nfs_share(share)) return std::unexpected(NfsStatus::kInval);
                       return files.downgrade(stateid, node, share);
                     });
}

NfsStatus nfs_delegreturn(NfsCompound& call) {
  const NfsStateid sent = read_nfs_stateid(call.arguments());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsPlace> place = call.place();
  if (!place) return place.error();
  const NfsResult<NfsStateid> stateid = call.meant(sent);
  if (!stateid) return stateid.error();
  if (call.slot() == nullptr) return NfsStatus::kBadStateid;  // 4.0 never gets any.
  return call.slot()->session().client().files().return_delegation(*stateid, place->node);
}

}  // namespace millrace
