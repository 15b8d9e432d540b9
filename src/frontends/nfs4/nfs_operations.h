#pragma once

#include <cstdint>

#include "frontends/nfs4/nfs_compound.h"

namespace millrace {

// Whether an operation waits for a disk or a store, and so where it is done.
enum class NfsWaits : std::uint8_t {
  kNever,  // On the loop.
  // On the loop with what is at hand; on the work executor, from its beginning, when that is not
  // enough. So it changes nothing before it has all that it may have to wait for.
  kPerhaps,
  kAlways,  // On the work executor; also what takes long.
};

// How an operation is done. It decodes its arguments, and on success has written what follows its
// status; what it wrote before a failure is taken back.
struct NfsOperationRow {
  NfsStatus (*execute)(NfsCompound& call) = nullptr;
  NfsWaits waits = NfsWaits::kAlways;
};

// Null when the minor version has no such operation.
const NfsOperationRow* find_nfs_operation(std::uint32_t number, std::uint32_t minor_version);
// May stand in a COMPOUND without SEQUENCE, alone.
bool begins_nfs_session(std::uint32_t number);

// One file each, but for twins.
NfsStatus nfs_access(NfsCompound& call);
NfsStatus nfs_backchannel_ctl(NfsCompound& call);
NfsStatus nfs_bind_conn_to_session(NfsCompound& call);
NfsStatus nfs_create_session(NfsCompound& call);
NfsStatus nfs_destroy_clientid(NfsCompound& call);
NfsStatus nfs_destroy_session(NfsCompound& call);
NfsStatus nfs_exchange_id(NfsCompound& call);
NfsStatus nfs_get_dir_delegation(NfsCompound& call);
NfsStatus nfs_getattr(NfsCompound& call);
NfsStatus nfs_getfh(NfsCompound& call);
NfsStatus nfs_lookup(NfsCompound& call);
NfsStatus nfs_lookupp(NfsCompound& call);
NfsStatus nfs_nverify(NfsCompound& call);
NfsStatus nfs_putfh(NfsCompound& call);
NfsStatus nfs_putrootfh(NfsCompound& call);
NfsStatus nfs_read(NfsCompound& call);
NfsStatus nfs_readdir(NfsCompound& call);
NfsStatus nfs_readlink(NfsCompound& call);
NfsStatus nfs_reclaim_complete(NfsCompound& call);
NfsStatus nfs_restorefh(NfsCompound& call);
NfsStatus nfs_savefh(NfsCompound& call);
NfsStatus nfs_secinfo(NfsCompound& call);
NfsStatus nfs_secinfo_no_name(NfsCompound& call);
NfsStatus nfs_sequence(NfsCompound& call);
NfsStatus nfs_verify(NfsCompound& call);
NfsStatus nfs_close(NfsCompound& call);
NfsStatus nfs_delegreturn(NfsCompound& call);
NfsStatus nfs_free_stateid(NfsCompound& call);
NfsStatus nfs_lock(NfsCompound& call);
NfsStatus nfs_lockt(NfsCompound& call);
NfsStatus nfs_locku(NfsCompound& call);
NfsStatus nfs_open(NfsCompound& call);
NfsStatus nfs_open_downgrade(NfsCompound& call);
NfsStatus nfs_test_stateid(NfsCompound& call);
NfsStatus nfs_open_confirm(NfsCompound& call);
NfsStatus nfs_release_lockowner(NfsCompound& call);
NfsStatus nfs_renew(NfsCompound& call);
NfsStatus nfs_setclientid(NfsCompound& call);
NfsStatus nfs_setclientid_confirm(NfsCompound& call);
// What changes something: kRofs, if nothing else is wrong.
NfsStatus nfs_commit(NfsCompound& call);
NfsStatus nfs_create(NfsCompound& call);
NfsStatus nfs_link(NfsCompound& call);
NfsStatus nfs_mutation(NfsCompound& call);
NfsStatus nfs_remove(NfsCompound& call);
NfsStatus nfs_rename(NfsCompound& call);
NfsStatus nfs_setattr(NfsCompound& call);
NfsStatus nfs_write(NfsCompound& call);
NfsStatus nfs_unsupported(NfsCompound& call);

}  // namespace millrace
