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
       {kAllocate, kCopy, kDeallocate, kWriteSame, kClone, kSetXattr, kRemoveXattr}) {
    row_of(table, operation) = {nfs_mutation, NfsWaits::kNever};
  }
  row_of(table, kCommit) = {nfs_commit};
  row_of(table, kCreate) = {nfs_create};
  row_of(table, kLink) = {nfs_link};
  row_of(table, kRemove) = {nfs_remove};
  row_of(table, kRename) = {nfs_rename};
  row_of(table, kSetAttr) = {nfs_setattr, NfsWaits::kNever};
  row_of(table, kWrite) = {nfs_write};
}

constexpr void add_sessions(Table& table) {
  using enum NfsOperation;
  row_of(table, kBackchannelCtl) = {nfs_backchannel_ctl, NfsWaits::kNever};
  row_of(table, kBindConnToSession) = {nfs_bind_conn_to_session, NfsWaits::kNever};
  row_of(table, kCreateSession) = {nfs_create_session};
  row_of(table, kDestroyClientId) = {nfs_destroy_clientid};
  row_of(table, kDestroySession) = {nfs_destroy_session};
  row_of(table, kExchangeId) = {nfs_exchange_id};
  row_of(table, kReclaimComplete) = {nfs_reclaim_complete, NfsWaits::kNever};
  row_of(table, kSequence) = {nfs_sequence, NfsWaits::kNever};
}

// What later versions have sessions for.
constexpr void add_version_40(Table& table) {
  using enum NfsOperation;
  row_of(table, kOpenConfirm) = {nfs_open_confirm, NfsWaits::kNever};
  row_of(table, kReleaseLockOwner) = {nfs_release_lockowner, NfsWaits::kNever};
  row_of(table, kRenew) = {nfs_renew, NfsWaits::kNever};
  row_of(table, kSetClientId) = {nfs_setclientid};
  row_of(table, kSetClientIdConfirm) = {nfs_setclientid_confirm};
}

constexpr void add_opens(Table& table) {
  using enum NfsOperation;
  row_of(table, kClose) = {nfs_close, NfsWaits::kNever};
  row_of(table, kDelegReturn) = {nfs_delegreturn, NfsWaits::kNever};
  row_of(table, kFreeStateid) = {nfs_free_stateid, NfsWaits::kNever};
  row_of(table, kLock) = {nfs_lock};
  row_of(table, kLockT) = {nfs_lockt};
  row_of(table, kLockU) = {nfs_locku, NfsWaits::kNever};
  row_of(table, kOpen) = {nfs_open, NfsWaits::kPerhaps};
  row_of(table, kOpenDowngrade) = {nfs_open_downgrade, NfsWaits::kNever};
  row_of(table, kTestStateid) = {nfs_test_stateid, NfsWaits::kNever};
}

constexpr void add_tree(Table& table) {
  using enum NfsOperation;
  row_of(table, kAccess) = {nfs_access, NfsWaits::kPerhaps};
  row_of(table, kGetAttr) = {nfs_getattr, NfsWaits::kPerhaps};
  row_of(table, kGetDirDelegation) = {nfs_get_dir_delegation, NfsWaits::kPerhaps};
  row_of(table, kGetFh) = {nfs_getfh, NfsWaits::kNever};
  row_of(table, kLookup) = {nfs_lookup, NfsWaits::kPerhaps};
  row_of(table, kLookupP) = {nfs_lookupp, NfsWaits::kPerhaps};
  row_of(table, kNVerify) = {nfs_nverify, NfsWaits::kPerhaps};
  row_of(table, kPutFh) = {nfs_putfh, NfsWaits::kNever};
  row_of(table, kPutPubFh) = {nfs_putrootfh, NfsWaits::kNever};
  row_of(table, kPutRootFh) = {nfs_putrootfh, NfsWaits::kNever};
  row_of(table, kRead) = {nfs_read, NfsWaits::kPerhaps};
  row_of(table, kReadDir) = {nfs_readdir};
  row_of(table, kReadLink) = {nfs_readlink, NfsWaits::kPerhaps};
  row_of(table, kRestoreFh) = {nfs_restorefh, NfsWaits::kNever};
  row_of(table, kSaveFh) = {nfs_savefh, NfsWaits::kNever};
  row_of(table, kSecInfo) = {nfs_secinfo, NfsWaits::kPerhaps};
  row_of(table, kSecInfoNoName) = {nfs_secinfo_no_name, NfsWaits::kPerhaps};
  row_of(table, kVerify) = {nfs_verify, NfsWaits::kPerhaps};
}

constexpr Table make_table(bool with_sessions) {
  Table table;
  table.fill({nfs_unsupported, NfsWaits::kNever});
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
