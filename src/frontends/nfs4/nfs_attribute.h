#pragma once

#include <cstdint>

namespace millrace {

// Attribute numbers of RFC 7530, 8881, 7862 and 9754; those that nobody here speaks of are left
// out. Their order is the order in which values are written.
enum class NfsAttribute : std::uint32_t {
  kSupportedAttrs = 0,
  kType = 1,
  kFhExpireType = 2,
  kChange = 3,
  kSize = 4,
  kLinkSupport = 5,
  kSymlinkSupport = 6,
  kNamedAttr = 7,
  kFsid = 8,
  kUniqueHandles = 9,
  kLeaseTime = 10,
  kRdattrError = 11,
  kAcl = 12,
  kAclSupport = 13,
  kArchive = 14,
  kCanSetTime = 15,
  kCaseInsensitive = 16,
  kCasePreserving = 17,
  kChownRestricted = 18,
  kFilehandle = 19,
  kFileId = 20,
  kFilesAvail = 21,
  kFilesFree = 22,
  kFilesTotal = 23,
  kFsLocations = 24,
  kHidden = 25,
  kHomogeneous = 26,
  kMaxFileSize = 27,
  kMaxLink = 28,
  kMaxName = 29,
  kMaxRead = 30,
  kMaxWrite = 31,
  kMimeType = 32,
  kMode = 33,
  kNoTrunc = 34,
  kNumLinks = 35,
  kOwner = 36,
  kOwnerGroup = 37,
  kRawDev = 41,
  kSpaceAvail = 42,
  kSpaceFree = 43,
  kSpaceTotal = 44,
  kSpaceUsed = 45,
  kSystem = 46,
  kTimeAccess = 47,
  kTimeAccessSet = 48,
  kTimeBackup = 49,
  kTimeCreate = 50,
  kTimeDelta = 51,
  kTimeMetadata = 52,
  kTimeModify = 53,
  kTimeModifySet = 54,
  kMountedOnFileId = 55,
  kFsLayoutTypes = 62,
  kSuppattrExclcreat = 75,
  kChangeAttrType = 79,
  kXattrSupport = 82,
  kOpenArguments = 86,
};
inline constexpr std::uint32_t kNfsAttributeLast = 86;

// How the change attribute moves (RFC 7862).
enum class NfsChangeType : std::uint32_t { kMonotonic = 0, kUndefined = 4 };

}  // namespace millrace
