#include "frontends/nfs4/nfs_attributes.h"

#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
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

template <class Number>
std::size_t store_number(std::byte* at, Number number) {
  store_xdr(at, number);
  return sizeof number;
}

std::size_t store_time(std::byte* at, WallTime time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  store_xdr(at, static_cast<std::uint64_t>(seconds.count()));
  store_xdr(at + sizeof(std::uint64_t), static_cast<std::uint32_t>((since - seconds).count()));
  return sizeof(std::uint64_t) + sizeof(std::uint32_t);
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

NfsBitmap NfsAttributeWriter::given(const NfsBitmap& wanted) const {
  return wanted & nfs_supported_attributes(minor_version);
}

void NfsAttributeWriter::write(XdrWriter& writer, const NfsBitmap& wanted,
                               const NfsNode& node) const {
  const NfsBitmap given = this->given(wanted);
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

std::size_t NfsAttributeWriter::store_own(std::byte* at, NfsAttribute attribute,
                                          const NfsNode& node) const {
  const NodeAttributes& facts = node.attributes;
  switch (attribute) {
    case kChange:
      return store_number(at, change_of(facts));
    case kSize:
    case kSpaceUsed:
      return store_number(at, facts.size);
    case kFilehandle: {
      const NfsHandles::Bytes handle = handles.encode(view.handle_of(node.place));
      store_xdr(at, static_cast<std::uint32_t>(handle.size()));
      std::memcpy(at + sizeof(std::uint32_t), handle.data(), handle.size());
      return sizeof(std::uint32_t) + handle.size();
    }
    case kFileId:
      return store_number(at, facts.number.value());
    case kMountedOnFileId:
      return store_number(at, node.mounted_on);
    case kMode:
      return store_number(at, std::uint32_t{shown_permissions(facts, NfsView::policy())});
    case kTimeAccess:
    case kTimeMetadata:
    case kTimeModify:
      return store_time(at, facts.modified);
    default:
      return 0;
  }
}

bool NfsAttributeWriter::write_node_value(XdrWriter& writer, NfsAttribute attribute,
                                          const NfsNode& node) const {
  std::array<std::byte, kOwnBytesMax> own;
  if (const std::size_t size = store_own(own.data(), attribute, node); size > 0) {
    writer.fixed(ByteView(own).first(size));
    return true;
  }
  const NodeAttributes& facts = node.attributes;
  const ExportPolicy policy = NfsView::policy();
  switch (attribute) {
    case kType:
      writer.enumeration(file_type(facts.kind));
      return true;
    case kFsid:
      // The directories above the exports are a file system of their own.
      writer.u64(node.place.exported != nullptr ? node.place.exported->id() : 0);
      writer.u64(0);
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
    case kRdattrError:   // None: NfsListedAttributes shows who has one.
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
      writer.u64(0);
      writer.u32(1);  // A nanosecond.
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
