#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace millrace {

// Numbers of NFSv4.0, 4.1 and 4.2 (RFC 7530, 8881, 7862, 9754), under the names of the RFCs.

inline constexpr std::uint32_t kNfsProgram = 100003;
inline constexpr std::uint32_t kNfsVersion = 4;
inline constexpr std::uint32_t kNfsProcedureNull = 0;
inline constexpr std::uint32_t kNfsProcedureCompound = 1;
inline constexpr std::uint32_t kNfsMinorVersionMax = 2;
inline constexpr std::uint32_t kNfsCallbackVersion = 1;
inline constexpr std::uint16_t kNfsPort = 2049;

// What fields may have at most. Where the RFC names no limit, it is ours.
inline constexpr std::size_t kNfsHandleBytesMax = 128;
inline constexpr std::size_t kNfsOpaqueBytesMax = 1024;  // Owners of clients, opens and locks.
inline constexpr std::size_t kNfsNameBytesMax = 255;
inline constexpr std::size_t kNfsLinkBytesMax = 4096;
inline constexpr std::size_t kNfsTagBytesMax = 1024;
// Attributes that nobody knows are no mistake: up to the number 8191.
inline constexpr std::size_t kNfsBitmapWordsMax = 256;
inline constexpr std::size_t kNfsTestedStateidsMax = 4096;
inline constexpr std::uint32_t kNfsReadBytesMax = static_cast<std::uint32_t>(kMiB);
inline constexpr std::uint32_t kNfsOperationsMax = 128;  // In one COMPOUND.
// A read of the largest size, with room for what stands around it.
inline constexpr std::uint32_t kNfsRecordBytesMax = kNfsReadBytesMax + 64 * 1024;
inline constexpr std::uint32_t kNfsSlotsMax = 1024;
inline constexpr std::uint32_t kNfsCachedReplyBytesMax = 8 * 1024;

enum class NfsOperation : std::uint32_t {
  kAccess = 3,
  kClose = 4,
  kCommit = 5,
  kCreate = 6,
  kDelegPurge = 7,
  kDelegReturn = 8,
  kGetAttr = 9,
  kGetFh = 10,
  kLink = 11,
  kLock = 12,
  kLockT = 13,
  kLockU = 14,
  kLookup = 15,
  kLookupP = 16,
  kNVerify = 17,
  kOpen = 18,
  kOpenAttr = 19,
  kOpenConfirm = 20,
  kOpenDowngrade = 21,
  kPutFh = 22,
  kPutPubFh = 23,
  kPutRootFh = 24,
  kRead = 25,
  kReadDir = 26,
  kReadLink = 27,
  kRemove = 28,
  kRename = 29,
  kRenew = 30,
  kRestoreFh = 31,
  kSaveFh = 32,
  kSecInfo = 33,
  kSetAttr = 34,
  kSetClientId = 35,
  kSetClientIdConfirm = 36,
  kVerify = 37,
  kWrite = 38,
  kReleaseLockOwner = 39,
  kBackchannelCtl = 40,
  kBindConnToSession = 41,
  kExchangeId = 42,
  kCreateSession = 43,
  kDestroySession = 44,
  kFreeStateid = 45,
  kGetDirDelegation = 46,
  kGetDeviceInfo = 47,
  kGetDeviceList = 48,
  kLayoutCommit = 49,
  kLayoutGet = 50,
  kLayoutReturn = 51,
  kSecInfoNoName = 52,
  kSequence = 53,
  kSetSsv = 54,
  kTestStateid = 55,
  kWantDelegation = 56,
  kDestroyClientId = 57,
  kReclaimComplete = 58,
  kAllocate = 59,
  kCopy = 60,
  kCopyNotify = 61,
  kDeallocate = 62,
  kIoAdvise = 63,
  kLayoutError = 64,
  kLayoutStats = 65,
  kOffloadCancel = 66,
  kOffloadStatus = 67,
  kReadPlus = 68,
  kSeek = 69,
  kWriteSame = 70,
  kClone = 71,
  kGetXattr = 72,
  kSetXattr = 73,
  kListXattrs = 74,
  kRemoveXattr = 75,
  kIllegal = 10044,
};
inline constexpr std::uint32_t kNfsOperationFirst = 3;
inline constexpr std::uint32_t kNfsOperationLast40 = 39;
inline constexpr std::uint32_t kNfsOperationLast41 = 58;
inline constexpr std::uint32_t kNfsOperationLast = 75;

enum class NfsStatus : std::uint32_t {
  kOk = 0,
  kPerm = 1,
  kNoEnt = 2,
  kIo = 5,
  kNxio = 6,
  kAccess = 13,
  kExist = 17,
  kXdev = 18,
  kNotDir = 20,
  kIsDir = 21,
  kInval = 22,
  kFBig = 27,
  kNoSpc = 28,
  kRofs = 30,
  kMLink = 31,
  kNameTooLong = 63,
  kNotEmpty = 66,
  kDQuot = 69,
  kStale = 70,
  kBadHandle = 10001,
  kBadCookie = 10003,
  kNotSupp = 10004,
  kTooSmall = 10005,
  kServerFault = 10006,
  kBadType = 10007,
  kDelay = 10008,
  kSame = 10009,
  kDenied = 10010,
  kExpired = 10011,
  kLocked = 10012,
  kGrace = 10013,
  kFhExpired = 10014,
  kShareDenied = 10015,
  kWrongSec = 10016,
  kClidInUse = 10017,
  kResource = 10018,
  kMoved = 10019,
  kNoFileHandle = 10020,
  kMinorVersMismatch = 10021,
  kStaleClientId = 10022,
  kStaleStateid = 10023,
  kOldStateid = 10024,
  kBadStateid = 10025,
  kBadSeqid = 10026,
  kNotSame = 10027,
  kLockRange = 10028,
  kSymlink = 10029,
  kRestoreFh = 10030,
  kLeaseMoved = 10031,
  kAttrNotSupp = 10032,
  kNoGrace = 10033,
  kReclaimBad = 10034,
  kReclaimConflict = 10035,
  kBadXdr = 10036,
  kLocksHeld = 10037,
  kOpenMode = 10038,
  kBadOwner = 10039,
  kBadChar = 10040,
  kBadName = 10041,
  kBadRange = 10042,
  kLockNotSupp = 10043,
  kOpIllegal = 10044,
  kDeadlock = 10045,
  kFileOpen = 10046,
  kAdminRevoked = 10047,
  kCbPathDown = 10048,
  kBadIoMode = 10049,
  kBadLayout = 10050,
  kBadSessionDigest = 10051,
  kBadSession = 10052,
  kBadSlot = 10053,
  kCompleteAlready = 10054,
  kConnNotBoundToSession = 10055,
  kDelegAlreadyWanted = 10056,
  kBackChanBusy = 10057,
  kLayoutTryLater = 10058,
  kLayoutUnavailable = 10059,
  kNoMatchingLayout = 10060,
  kRecallConflict = 10061,
  kUnknownLayoutType = 10062,
  kSeqMisordered = 10063,
  kSequencePos = 10064,
  kReqTooBig = 10065,
  kRepTooBig = 10066,
  kRepTooBigToCache = 10067,
  kRetryUncachedRep = 10068,
  kUnsafeCompound = 10069,
  kTooManyOps = 10070,
  kOpNotInSession = 10071,
  kHashAlgUnsupp = 10072,
  kClientIdBusy = 10074,
  kPnfsIoHole = 10075,
  kSeqFalseRetry = 10076,
  kBadHighSlot = 10077,
  kDeadSession = 10078,
  kEncrAlgUnsupp = 10079,
  kPnfsNoLayout = 10080,
  kNotOnlyOp = 10081,
  kWrongCred = 10082,
  kWrongType = 10083,
  kDirDelegUnavail = 10084,
  kRejectDeleg = 10085,
  kReturnConflict = 10086,
  kDelegRevoked = 10087,
  kPartnerNotSupp = 10088,
  kPartnerNoAuth = 10089,
  kUnionNotSupp = 10090,
  kOffloadDenied = 10091,
  kWrongLfs = 10092,
  kBadLabel = 10093,
  kOffloadNoReqs = 10094,
  kNoXattr = 10095,
  kXattr2Big = 10096,
};

enum class NfsFileType : std::uint32_t {
  kRegular = 1,
  kDirectory = 2,
  kSymlink = 5,
};

// Bits of ACCESS.
inline constexpr std::uint32_t kNfsAccessRead = 0x01;
inline constexpr std::uint32_t kNfsAccessLookup = 0x02;
inline constexpr std::uint32_t kNfsAccessModify = 0x04;
inline constexpr std::uint32_t kNfsAccessExtend = 0x08;
inline constexpr std::uint32_t kNfsAccessDelete = 0x10;
inline constexpr std::uint32_t kNfsAccessExecute = 0x20;

// Operations of the callback program.
// Procedures and operations of callbacks.
inline constexpr std::uint32_t kNfsCallbackCompound = 1;
inline constexpr std::uint32_t kNfsCallbackRecall = 4;
inline constexpr std::uint32_t kNfsCallbackRecallAny = 8;
inline constexpr std::uint32_t kNfsCallbackRecallSlot = 10;
inline constexpr std::uint32_t kNfsCallbackSequence = 11;

}  // namespace millrace
