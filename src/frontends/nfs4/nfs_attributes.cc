#include "frontends/nfs4/nfs_attributes.h"

#include <cassert>
#include <cstdint>
#include <string>

#include "frontends/nfs4/nfs_state_numbers.h"

namespace millrace {
namespace {

using enum NfsAttribute;

constexpr NfsBitmap kOf40 = {
    kSupportedAttrs,
    kType,
    kFhExpireType,
    kChange,
    kSize,
    kLinkSupport,
    kSymlinkSupport,
    kNamedAttr,
    kFsid,
    kUniqueHandles,
    kLeaseTime,
    kRdattrError,
    kAclSupport,
    kCanSetTime,
    kCaseInsensitive,
    kCasePreserving,
    kChownRestricted,
    kFilehandle,
    kFileId,
    kFilesAvail,
    kFilesFree,
    kFilesTotal,
    kHomogeneous,
    kMaxFileSize,
    kMaxLink,
    kMaxName,
    kMaxRead,
    kMaxWrite,
    kMode,
    kNoTrunc,
    kNumLinks,
    kOwner,
    kOwnerGroup,
    kRawDev,
    kSpaceAvail,
    kSpaceFree,
    kSpaceTotal,
    kSpaceUsed,
    kTimeAccess,
    kTimeDelta,
    kTimeMetadata,
    kTimeModify,
    kMountedOnFileId,
};

constexpr NfsBitmap kSettable = {kSize, kMode, kOwner, kOwnerGroup};

constexpr std::uint64_t kSecond = 1'000'000'000;

void write_time(XdrWriter& writer, WallTime time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  writer.i64(seconds.count());
  writer.u32(static_cast<std::uint32_t>((since - seconds).count()));
}

NfsFileType file_type(NodeKind kind) {
  switch (kind) {
    case NodeKind::kDirectory:
      return NfsFileType::kDirectory;
    case NodeKind::kSymlink:
      return NfsFileType::kSymlink;
    case NodeKind::kFile:
      break;
  }
  return NfsFileType::kRegular;
}

// What OPEN takes (RFC 9754): bitmaps whose bits are the values.
void write_open_arguments(XdrWriter& writer) {
  const auto write_bits = [&writer](std::initializer_list<std::uint32_t> values) {
    std::uint32_t word = 0;
    for (const std::uint32_t value : values)
      word |= std::uint32_t{1} << value;
    writer.u32(1);
    writer.u32(word);
  };
  constexpr std::uint32_t kWantAnyDeleg = 3;
  constexpr std::uint32_t kWantNoDeleg = 4;
  constexpr std::uint32_t kWantOpenXorDelegation = 21;
  write_bits({kShareAccessRead, kShareAccessWrite, kShareAccessBoth});
  write_bits({kShareDenyNone, kShareDenyRead, kShareDenyWrite, kShareDenyBoth});
  write_bits({kWantAnyDeleg, kWantNoDeleg, kWantOpenXorDelegation});
  write_bits({static_cast<std::uint32_t>(NfsOpenClaim::kNull),
              static_cast<std::uint32_t>(NfsOpenClaim::kPrevious),
              static_cast<std::uint32_t>(NfsOpenClaim::kDelegateCurrent),
              static_cast<std::uint32_t>(NfsOpenClaim::kFh),
              static_cast<std::uint32_t>(NfsOpenClaim::kDelegateCurrentFh)});
  write_bits({static_cast<std::uint32_t>(NfsCreateMode::kUnchecked),
              static_cast<std::uint32_t>(NfsCreateMode::kGuarded),
              static_cast<std::uint32_t>(NfsCreateMode::kExclusive),
              static_cast<std::uint32_t>(NfsCreateMode::kExclusive41)});
}

}  // namespace

NfsBitmap nfs_supported_attributes(std::uint32_t minor_version) {
  NfsBitmap supported = kOf40;
  if (minor_version >= 1) supported.add(kSuppattrExclcreat);
  if (minor_version >= 2) {
    supported.add(kChangeAttrType);
    supported.add(kXattrSupport);
    supported.add(kOpenArguments);
  }
  return supported;
}

NfsBitmap skip_nfs_attributes(XdrReader& reader) {
  const NfsBitmap mask = NfsBitmap::read(reader);
  reader.opaque(kNfsRecordBytesMax);
  return mask;
}

NfsStatus check_nfs_settable(const NfsBitmap& attributes, std::uint32_t minor_version) {
  const NfsBitmap readable = attributes & nfs_supported_attributes(minor_version);
  const NfsBitmap settable = attributes & kSettable;
  NfsStatus status = NfsStatus::kOk;
  attributes.for_each([&](NfsAttribute attribute) {
    if (settable.contains(attribute) || status == NfsStatus::kAttrNotSupp) return;
    status = readable.contains(attribute) ? NfsStatus::kInval : NfsStatus::kAttrNotSupp;
  });
  return status;
}

std::uint64_t NfsAttributeWriter::change_of(const NodeAttributes& node) const {
  // The number of a file stands for what it holds, wherever it lies.
  const bool constant = node.lifetime == NodeLifetime::kForever || node.kind == NodeKind::kFile;
  const auto modified = static_cast<std::uint64_t>(node.modified.time_since_epoch().count());
  if (constant) return modified;
  return static_cast<std::uint64_t>(now.time_since_epoch().count()) / kSecond * kSecond;
}

void NfsAttributeWriter::write(XdrWriter& writer, const NfsBitmap& wanted,
                               const NfsNode& node) const {
  const NfsBitmap given = wanted & nfs_supported_attributes(minor_version);
  given.write(writer);
  const XdrWriter::Mark length = writer.mark();
  writer.u32(0);
  const std::uint64_t begin = writer.size();
  given.for_each([&](NfsAttribute attribute) { write_value(writer, attribute, node); });
  writer.patch_u32(length, static_cast<std::uint32_t>(writer.size() - begin));
}

void NfsAttributeWriter::write_value(XdrWriter& writer, NfsAttribute attribute,
                                     const NfsNode& node) const {
  const bool written = write_node_value(writer, attribute, node) ||
                       write_usage_value(writer, attribute) ||
                       write_server_value(writer, attribute);
  assert(written);
  (void)written;
}

bool NfsAttributeWriter::write_node_value(XdrWriter& writer, NfsAttribute attribute,
                                          const NfsNode& node) const {
  const NodeAttributes& facts = node.attributes;
  const ExportPolicy policy = NfsView::policy();
  switch (attribute) {
    case kType:
      writer.enumeration(file_type(facts.kind));
      return true;
    case kChange:
      writer.u64(change_of(facts));
      return true;
    case kSize:
    case kSpaceUsed:
      writer.u64(facts.size);
      return true;
    case kFsid:
      // The directories above the exports are a file system of their own.
      writer.u64(node.place.exported != nullptr ? node.place.exported->id() : 0);
      writer.u64(0);
      return true;
    case kFilehandle:
      writer.opaque(handles.encode(view.handle_of(node.place)));
      return true;
    case kFileId:
      writer.u64(facts.number.value());
      return true;
    case kMountedOnFileId:
      writer.u64(node.mounted_on);
      return true;
    case kMode:
      writer.u32(shown_permissions(facts, policy));
      return true;
    case kNumLinks:
      writer.u32(facts.kind == NodeKind::kDirectory ? 2 : 1);
      return true;
    case kOwner:
      writer.text(std::to_string(policy.uid));
      return true;
    case kOwnerGroup:
      writer.text(std::to_string(policy.gid));
      return true;
    case kTimeAccess:
    case kTimeMetadata:
    case kTimeModify:
      write_time(writer, facts.modified);
      return true;
    default:
      return false;
  }
}

bool NfsAttributeWriter::write_usage_value(XdrWriter& writer, NfsAttribute attribute) const {
  switch (attribute) {
    case kFilesAvail:
    case kFilesFree:
    case kSpaceAvail:
    case kSpaceFree:
      writer.u64(0);
      return true;
    case kFilesTotal:
      writer.u64(usage.nodes);
      return true;
    case kSpaceTotal:
      writer.u64(usage.bytes);
      return true;
    default:
      return false;
  }
}

bool NfsAttributeWriter::write_server_value(XdrWriter& writer, NfsAttribute attribute) const {
  switch (attribute) {
    case kSupportedAttrs:
      nfs_supported_attributes(minor_version).write(writer);
      return true;
    case kSuppattrExclcreat:
      NfsBitmap().write(writer);
      return true;
    case kFhExpireType:  // Never.
    case kRdattrError:   // None: who has one is not shown.
    case kAclSupport:
      writer.u32(0);
      return true;
    case kLinkSupport:
    case kNamedAttr:
    case kCanSetTime:
    case kCaseInsensitive:
    case kXattrSupport:
      writer.boolean(false);
      return true;
    case kSymlinkSupport:
    case kUniqueHandles:
    case kCasePreserving:
    case kChownRestricted:
    case kHomogeneous:
    case kNoTrunc:
      writer.boolean(true);
      return true;
    case kLeaseTime:
      writer.u32(lease_seconds);
      return true;
    case kMaxFileSize:
      writer.u64(INT64_MAX);
      return true;
    case kMaxLink:
      writer.u32(1);
      return true;
    case kMaxName:
      writer.u32(kNfsNameBytesMax);
      return true;
    case kMaxRead:
    case kMaxWrite:
      writer.u64(kNfsReadBytesMax);
      return true;
    case kRawDev:
      writer.u64(0);
      return true;
    case kTimeDelta:
      write_time(writer, WallTime(Duration(1)));
      return true;
    case kChangeAttrType:
      writer.enumeration(NfsChangeType::kMonotonic);
      return true;
    case kOpenArguments:
      write_open_arguments(writer);
      return true;
    default:
      return false;
  }
}

}  // namespace millrace
