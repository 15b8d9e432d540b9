#pragma once

#include <cstdint>

namespace millrace {

// Flags and choices of the operations that have to do with clients, sessions and opens.

// EXCHANGE_ID.
inline constexpr std::uint32_t kExchangeSuppMovedRefer = 0x00000001;
inline constexpr std::uint32_t kExchangeSuppMovedMigr = 0x00000002;
inline constexpr std::uint32_t kExchangeSuppFenceOps = 0x00000004;  // 4.2
inline constexpr std::uint32_t kExchangeBindPrincStateid = 0x00000100;
inline constexpr std::uint32_t kExchangeUseNonPnfs = 0x00010000;
inline constexpr std::uint32_t kExchangeUsePnfsMds = 0x00020000;
inline constexpr std::uint32_t kExchangeUsePnfsDs = 0x00040000;
inline constexpr std::uint32_t kExchangeUpdConfirmedRecA = 0x40000000;
inline constexpr std::uint32_t kExchangeConfirmedR = 0x80000000;
// All that a client may set.
inline constexpr std::uint32_t kExchangeMaskA = 0x40070103;

enum class NfsStateProtect : std::uint32_t { kNone = 0, kMachineCredentials = 1, kSsv = 2 };

// CREATE_SESSION.
inline constexpr std::uint32_t kSessionPersist = 0x1;
inline constexpr std::uint32_t kSessionBackChannel = 0x2;
inline constexpr std::uint32_t kSessionRdma = 0x4;

// BIND_CONN_TO_SESSION: what a client asks for, and what it gets.
enum class NfsChannelWish : std::uint32_t {
  kFore = 1,
  kBack = 2,
  kForeOrBoth = 3,
  kBackOrBoth = 7
};
enum class NfsChannel : std::uint32_t { kFore = 1, kBack = 2, kBoth = 3 };

// sr_status_flags of SEQUENCE.
inline constexpr std::uint32_t kSequenceCbPathDown = 0x00000001;
inline constexpr std::uint32_t kSequenceExpiredAllStateRevoked = 0x00000008;
inline constexpr std::uint32_t kSequenceExpiredSomeStateRevoked = 0x00000010;
inline constexpr std::uint32_t kSequenceAdminStateRevoked = 0x00000020;
inline constexpr std::uint32_t kSequenceRecallableStateRevoked = 0x00000040;
inline constexpr std::uint32_t kSequenceLeaseMoved = 0x00000080;
inline constexpr std::uint32_t kSequenceRestartReclaimNeeded = 0x00000100;
inline constexpr std::uint32_t kSequenceCbPathDownSession = 0x00000200;
inline constexpr std::uint32_t kSequenceBackchannelFault = 0x00000400;

// share_access and share_deny of OPEN; the wishes stand in the upper bits of share_access.
inline constexpr std::uint32_t kShareAccessRead = 1;
inline constexpr std::uint32_t kShareAccessWrite = 2;
inline constexpr std::uint32_t kShareAccessBoth = 3;
inline constexpr std::uint32_t kShareDenyNone = 0;
inline constexpr std::uint32_t kShareDenyRead = 1;
inline constexpr std::uint32_t kShareDenyWrite = 2;
inline constexpr std::uint32_t kShareDenyBoth = 3;
inline constexpr std::uint32_t kShareWantMask = 0xff00;
inline constexpr std::uint32_t kShareWantNoPreference = 0x0000;
inline constexpr std::uint32_t kShareWantReadDeleg = 0x0100;
inline constexpr std::uint32_t kShareWantWriteDeleg = 0x0200;
inline constexpr std::uint32_t kShareWantAnyDeleg = 0x0300;
inline constexpr std::uint32_t kShareWantNoDeleg = 0x0400;
inline constexpr std::uint32_t kShareWantCancel = 0x0500;
inline constexpr std::uint32_t kShareWantSignalWhenAvailable = 0x00010000;
inline constexpr std::uint32_t kShareWantPushWhenUncontended = 0x00020000;
inline constexpr std::uint32_t kShareWantDelegTimestamps = 0x00100000;
inline constexpr std::uint32_t kShareWantOpenXorDelegation = 0x00200000;

enum class NfsOpenType : std::uint32_t { kNoCreate = 0, kCreate = 1 };
enum class NfsCreateMode : std::uint32_t {
  kUnchecked = 0,
  kGuarded = 1,
  kExclusive = 2,
  kExclusive41 = 3,
};
enum class NfsOpenClaim : std::uint32_t {
  kNull = 0,
  kPrevious = 1,
  kDelegateCurrent = 2,
  kDelegatePrevious = 3,
  kFh = 4,
  kDelegateCurrentFh = 5,
  kDelegatePreviousFh = 6,
};
enum class NfsDelegation : std::uint32_t { kNone = 0, kRead = 1, kWrite = 2, kNoneExt = 3 };
enum class NfsWhyNoDelegation : std::uint32_t {
  kNotWanted = 0,
  kContention = 1,
  kResource = 2,
  kNotSuppFtype = 3,
  kWriteDelegNotSuppFtype = 4,
  kNotSuppUpgrade = 5,
  kNotSuppDowngrade = 6,
  kCancelled = 7,
  kIsDir = 8,
};
// rflags of OPEN's answer.
inline constexpr std::uint32_t kOpenResultConfirm = 0x2;
inline constexpr std::uint32_t kOpenResultLockTypePosix = 0x4;
inline constexpr std::uint32_t kOpenResultPreserveUnlinked = 0x8;
inline constexpr std::uint32_t kOpenResultMayNotifyLock = 0x20;
inline constexpr std::uint32_t kOpenResultNoOpenStateid = 0x10;

enum class NfsLockType : std::uint32_t {
  kRead = 1,
  kWrite = 2,
  kReadWaiting = 3,
  kWriteWaiting = 4,
};

}  // namespace millrace
