#include "frontends/nfs4/nfs_getattr.h"

#include <algorithm>
#include <chrono>

#include "frontends/nfs4/nfs_operations.h"

namespace millrace {
namespace {

// The current file handle's node, with what is looked up only for those who want it.
NfsResult<NfsNode> wanted_node(NfsCompound& call, const NfsBitmap& wanted) {
  NfsResult<NfsNode> node = call.node();
  if (node && wanted.contains(NfsAttribute::kMountedOnFileId))
    node->mounted_on = call.view().mounted_on(call.context(), *node);
  return node;
}

// VERIFY and NVERIFY: kSame when all attributes are as the client has them, kNotSame otherwise.
NfsStatus compare_attributes(NfsCompound& call) {
  const NfsBitmap wanted = NfsBitmap::read(call.arguments());
  const ByteView values = call.arguments().opaque(kNfsRecordBytesMax);
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsNode> node = wanted_node(call, wanted);
  if (!node) return node.error();
  if (wanted.contains_any(kNfsWriteOnlyAttributes) || wanted.contains(NfsAttribute::kRdattrError))
    return NfsStatus::kInval;
  if ((wanted & nfs_supported_attributes(call.minor_version())) != wanted)
    return NfsStatus::kAttrNotSupp;
  XdrWriter ours;
  nfs_attribute_writer(call, wanted, *node).write(ours, wanted, *node);
  XdrReader reader(ours.written());
  NfsBitmap::read(reader);
  return std::ranges::equal(reader.opaque(SIZE_MAX), values) ? NfsStatus::kSame
                                                             : NfsStatus::kNotSame;
}

}  // namespace

NfsAttributeWriter nfs_attribute_writer(NfsCompound& call, const NfsBitmap& wanted,
                                        const NfsNode& node) {
  NfsService& service = call.service();
  NfsAttributeWriter writer{
      .handles = service.handles,
      .view = call.view(),
      .minor_version = call.minor_version(),
      .lease_seconds = static_cast<std::uint32_t>(
          std::chrono::duration_cast<std::chrono::seconds>(service.state.options().lease).count()),
      .now = service.clock.wall_now(),
  };
  if (wanted.contains_any(kNfsUsageAttributes) && node.place.exported != nullptr) {
    // df of something that cannot be told right now shows nothing, as above the versions.
    writer.usage = service.files.usage(call.context(), node.place.node).value_or(TreeUsage{});
  }
  return writer;
}

NfsStatus nfs_getattr(NfsCompound& call) {
  const NfsBitmap wanted = NfsBitmap::read(call.arguments());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsNode> node = wanted_node(call, wanted);
  if (!node) return node.error();
  if (wanted.contains_any(kNfsWriteOnlyAttributes)) return NfsStatus::kInval;
  nfs_attribute_writer(call, wanted, *node).write(call.results(), wanted, *node);
  return NfsStatus::kOk;
}

NfsStatus nfs_verify(NfsCompound& call) {
  const NfsStatus status = compare_attributes(call);
  return status == NfsStatus::kSame ? NfsStatus::kOk : status;
}

NfsStatus nfs_nverify(NfsCompound& call) {
  const NfsStatus status = compare_attributes(call);
  return status == NfsStatus::kNotSame ? NfsStatus::kOk : status;
}

}  // namespace millrace
