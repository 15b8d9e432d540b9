#include "frontends/nfs4/nfs_operations.h"

#include <array>

namespace millrace {
namespace {

using Table = std::array<NfsOperationRow, kNfsOperationLast + 1>;

constexpr NfsOperationRow& row_of(Table& table, NfsOperation operation) {
  return table[static_cast<std::size_t>(operation)];
}

constexpr void add_mutations(Table& table) {
  using enum NfsOperation;
  for (const NfsOperation operation :
       {kCommit, kCreate, kLink, kRemove, kRename, kWrite, kAllocate, kCopy, kDeallocate,
        kWriteSame, kClone, kSetXattr, kRemoveXattr}) {
    row_of(table, operation) = {nfs_mutation, false};
  }
  row_of(table, kSetAttr) = {nfs_setattr, false};
}

constexpr void add_sessions(Table& table) {
  using enum NfsOperation;
  row_of(table, kBackchannelCtl) = {nfs_backchannel_ctl, false};
  row_of(table, kBindConnToSession) = {nfs_bind_conn_to_session, false};
  row_of(table, kCreateSession) = {nfs_create_session};
  row_of(table, kDestroyClientId) = {nfs_destroy_clientid};
  row_of(table, kDestroySession) = {nfs_destroy_session};
  row_of(table, kExchangeId) = {nfs_exchange_id};
  row_of(table, kReclaimComplete) = {nfs_reclaim_complete, false};
  row_of(table, kSequence) = {nfs_sequence, false};
}

// What later versions have sessions for.
constexpr void add_version_40(Table& table) {
  using enum NfsOperation;
  row_of(table, kOpenConfirm) = {nfs_open_confirm, false};
  row_of(table, kReleaseLockOwner) = {nfs_release_lockowner, false};
  row_of(table, kRenew) = {nfs_renew, false};
  row_of(table, kSetClientId) = {nfs_setclientid};
  row_of(table, kSetClientIdConfirm) = {nfs_setclientid_confirm};
}

constexpr void add_opens(Table& table) {
  using enum NfsOperation;
  row_of(table, kClose) = {nfs_close, false};
  row_of(table, kDelegReturn) = {nfs_delegreturn, false};
  row_of(table, kFreeStateid) = {nfs_free_stateid, false};
  row_of(table, kLock) = {nfs_lock};
  row_of(table, kLockT) = {nfs_lockt};
  row_of(table, kLockU) = {nfs_locku, false};
  row_of(table, kOpen) = {nfs_open};
  row_of(table, kOpenDowngrade) = {nfs_open_downgrade, false};
  row_of(table, kTestStateid) = {nfs_test_stateid, false};
}

constexpr void add_tree(Table& table) {
  using enum NfsOperation;
  row_of(table, kAccess) = {nfs_access};
  row_of(table, kGetAttr) = {nfs_getattr};
  row_of(table, kGetDirDelegation) = {nfs_get_dir_delegation};
  row_of(table, kGetFh) = {nfs_getfh, false};
  row_of(table, kLookup) = {nfs_lookup};
  row_of(table, kLookupP) = {nfs_lookupp};
  row_of(table, kNVerify) = {nfs_nverify};
  row_of(table, kPutFh) = {nfs_putfh, false};
  row_of(table, kPutPubFh) = {nfs_putrootfh, false};
  row_of(table, kPutRootFh) = {nfs_putrootfh, false};
  row_of(table, kRead) = {nfs_read, false};
  row_of(table, kReadDir) = {nfs_readdir};
  row_of(table, kReadLink) = {nfs_readlink};
  row_of(table, kRestoreFh) = {nfs_restorefh, false};
  row_of(table, kSaveFh) = {nfs_savefh, false};
  row_of(table, kSecInfo) = {nfs_secinfo};
  row_of(table, kSecInfoNoName) = {nfs_secinfo_no_name};
  row_of(table, kVerify) = {nfs_verify};
}

constexpr Table make_table(bool with_sessions) {
  Table table;
  table.fill({nfs_unsupported, false});
  if (!with_sessions) add_version_40(table);
  add_mutations(table);
  add_sessions(table);
  add_opens(table);
  add_tree(table);
  return table;
}

constexpr Table kNfsOperationTable = make_table(true);
constexpr Table kNfsOperationTable40 = make_table(false);

}  // namespace

const NfsOperationRow* find_nfs_operation(std::uint32_t number, std::uint32_t minor_version) {
  constexpr std::array kLast = {kNfsOperationLast40, kNfsOperationLast41, kNfsOperationLast};
  if (number < kNfsOperationFirst || number > kLast[minor_version]) return nullptr;
  return minor_version == 0 ? &kNfsOperationTable40[number] : &kNfsOperationTable[number];
}

bool begins_nfs_session(std::uint32_t number) {
  switch (static_cast<NfsOperation>(number)) {
    case NfsOperation::kBindConnToSession:
    case NfsOperation::kCreateSession:
    case NfsOperation::kDestroyClientId:
    case NfsOperation::kDestroySession:
    case NfsOperation::kExchangeId:
      return true;
    default:
      return false;
  }
}

NfsStatus nfs_unsupported(NfsCompound& /*call*/) { return NfsStatus::kNotSupp; }

}  // namespace millrace
