#include "frontends/nfs4/nfs_attributes.h"
#include "frontends/nfs4/nfs_lookup.h"
#include "frontends/nfs4/nfs_open_arguments.h"
#include "frontends/nfs4/nfs_operations.h"

// Nothing is ever changed. A call that could not be done anywhere is told what is wrong with it
// first: clients, and those who test them, learn more from that.

namespace millrace {
namespace {

constexpr std::uint32_t kDeviceBlock = 3;
constexpr std::uint32_t kDeviceCharacter = 4;
constexpr std::uint32_t kSocket = 6;
constexpr std::uint32_t kFifo = 7;

// What it would be.
struct NewNode {
  std::uint32_t type = 0;
  std::string_view link;
  std::string_view name;
};

NewNode read_new_node(XdrReader& reader) {
  NewNode node{.type = reader.u32(), .link = {}, .name = {}};
  if (node.type == static_cast<std::uint32_t>(NfsFileType::kSymlink)) {
    node.link = reader.text(kNfsRecordBytesMax);
  } else if (node.type == kDeviceBlock || node.type == kDeviceCharacter) {
    reader.u64();
  }
  node.name = reader.text(kNfsLinkBytesMax);
  return node;
}

NfsStatus check_new_node(const NewNode& node) {
  const NfsStatus name = check_nfs_name(node.name);
  if (name != NfsStatus::kOk) return name;
  switch (node.type) {
    case static_cast<std::uint32_t>(NfsFileType::kSymlink):
      return node.link.empty() ? NfsStatus::kInval : NfsStatus::kOk;
    case static_cast<std::uint32_t>(NfsFileType::kDirectory):
    case kDeviceBlock:
    case kDeviceCharacter:
    case kSocket:
    case kFifo:
      return NfsStatus::kOk;
    default:
      return NfsStatus::kBadType;
  }
}

// A regular file, which is what can be written.
NfsStatus refuse_writing(NfsCompound& call) {
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsNode> node = call.node();
  if (!node) return node.error();
  switch (node->attributes.kind) {
    case NodeKind::kDirectory:
      return NfsStatus::kIsDir;
    case NodeKind::kSymlink:
      return call.minor_version() == 0 ? NfsStatus::kInval : NfsStatus::kSymlink;
    case NodeKind::kFile:
      break;
  }
  return NfsStatus::kRofs;
}

// The saved file handle in the current one's place, until the end of the scope.
class SavedInPlace {
 public:
  explicit SavedInPlace(NfsCompound& call) : call_(call) { call_.current().swap(call_.saved()); }
  ~SavedInPlace() { call_.current().swap(call_.saved()); }
  SavedInPlace(const SavedInPlace&) = delete;
  SavedInPlace& operator=(const SavedInPlace&) = delete;

 private:
  NfsCompound& call_;
};

}  // namespace

NfsStatus nfs_mutation(NfsCompound& call) {
  return call.current() ? NfsStatus::kRofs : NfsStatus::kNoFileHandle;
}

NfsStatus nfs_commit(NfsCompound& call) {
  call.arguments().u64();  // Offset.
  call.arguments().u32();  // Count.
  return refuse_writing(call);
}

NfsStatus nfs_write(NfsCompound& call) {
  read_nfs_stateid(call.arguments());
  call.arguments().u64();  // Offset.
  call.arguments().u32();  // How stable.
  call.arguments().opaque(kNfsRecordBytesMax);
  return refuse_writing(call);
}

NfsStatus nfs_create(NfsCompound& call) {
  const NewNode node = read_new_node(call.arguments());
  const NfsBitmap attributes = skip_nfs_attributes(call.arguments());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsNode> directory = nfs_directory(call);
  if (!directory) return directory.error();
  NfsStatus status = check_new_node(node);
  if (status == NfsStatus::kOk) status = check_nfs_settable(attributes, call.minor_version());
  return status == NfsStatus::kOk ? NfsStatus::kRofs : status;
}

NfsStatus nfs_link(NfsCompound& call) {
  const std::string_view name = call.arguments().text(kNfsLinkBytesMax);
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsNode> directory = nfs_directory(call);
  if (!directory) return directory.error();
  if (!call.saved()) return NfsStatus::kNoFileHandle;
  const NfsResult<NfsNode> linked = call.view().node(call.context(), call.saved()->place);
  if (!linked) return linked.error();
  if (linked->attributes.kind == NodeKind::kDirectory) return NfsStatus::kIsDir;
  const NfsStatus status = check_nfs_name(name);
  return status == NfsStatus::kOk ? NfsStatus::kRofs : status;
}

NfsStatus nfs_remove(NfsCompound& call) {
  const std::string_view name = call.arguments().text(kNfsLinkBytesMax);
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsPlace> child = find_nfs_child(call, name);
  return child ? NfsStatus::kRofs : child.error();
}

NfsStatus nfs_rename(NfsCompound& call) {
  const std::string_view from = call.arguments().text(kNfsLinkBytesMax);
  const std::string_view to = call.arguments().text(kNfsLinkBytesMax);
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsNode> directory = nfs_directory(call);
  if (!directory) return directory.error();
  const SavedInPlace saved(call);
  const NfsResult<NfsNode> before = nfs_directory(call);
  if (!before) return before.error();
  if (const NfsStatus status = check_nfs_name(to); status != NfsStatus::kOk) return status;
  const NfsResult<NfsPlace> child = find_nfs_child(call, from);
  return child ? NfsStatus::kRofs : child.error();
}

// Its result says which attributes were set, also when that fails.
NfsStatus nfs_setattr(NfsCompound& call) {
  call.keep_result();
  NfsBitmap().write(call.results());
  read_nfs_stateid(call.arguments());
  const NfsBitmap attributes = skip_nfs_attributes(call.arguments());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  if (!call.current()) return NfsStatus::kNoFileHandle;
  const NfsStatus status = check_nfs_settable(attributes, call.minor_version());
  return status == NfsStatus::kOk ? NfsStatus::kRofs : status;
}

}  // namespace millrace
