#include "frontends/nfs4/nfs_view.h"

#include <algorithm>
#include <utility>

#include "base/at_hand.h"
#include "base/log.h"
#include "base/siphash.h"
#include "frontends/nfs4/nfs_status.h"

namespace millrace {
namespace {

constexpr std::string_view kRootDirectory = "/";
constexpr std::uint16_t kDirectoryPermissions = 0555;

// The same for ever: it stands in handles, and is the inode number. Nobody gains by a collision,
// so the key is no secret.
NodeNumber directory_number(std::string_view path) {
  return NodeNumber(siphash({0, 0}, as_bytes(path)));
}

std::string joined(std::string_view directory, std::string_view name) {
  std::string path(directory == kRootDirectory ? "" : directory);
  return (path += '/').append(name);
}

std::string parent_directory(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(slash == 0 ? kRootDirectory : path.substr(0, slash));
}

}  // namespace

NfsView::NfsView(FileSystem& files, std::shared_ptr<const NfsExportTable> table, Client client,
                 WallTime started)
    : files_(files), table_(std::move(table)), client_(client), started_(started) {}

NfsPlace NfsView::root() {
  return {.node = directory_number(kRootDirectory), .directory = std::string(kRootDirectory)};
}

NfsHandle NfsView::handle_of(const NfsPlace& place) const {
  if (place.exported == nullptr) return {.export_id = 0, .node = place.node};
  if (last_tree_ != tree_of(place.node)) {
    last_check_ = files_.tree_check(place.node).value_or(0);
    last_tree_ = tree_of(place.node);
  }
  if (last_export_ != place.exported) {
    last_export_ = place.exported;
    last_export_id_ = place.exported->id();
  }
  return {.export_id = last_export_id_, .node = place.node, .tree_check = last_check_};
}

bool NfsView::is_foreign(const NfsHandle& handle) const {
  return handle.export_id != 0 && !files_.tree_check(handle.node);
}

NfsStatus NfsView::adopt(const RequestContext& context, const NfsHandle& handle) const {
  return nfs_status_of(files_.find_tree(context, handle.node, handle.tree_check),
                       NfsAttempt::kNode);
}

NfsStatus NfsView::admit(const NfsExport& exported) const {
  if (!exported.allows(client_.address)) return NfsStatus::kAccess;
  if (client_.transport < exported.transport) return NfsStatus::kWrongSec;
  const bool known =
      client_.caller.flavour == RpcFlavour::kSys ? exported.allows_sys : exported.allows_none;
  return known ? NfsStatus::kOk : NfsStatus::kWrongSec;
}

NfsResult<NfsPlace> NfsView::find(const NfsHandle& handle) const {
  if (handle.export_id != 0) {
    const NfsExport* const exported = table_->find(handle.export_id);
    if (exported == nullptr) return std::unexpected(NfsStatus::kStale);
    if (const NfsStatus status = admit(*exported); status != NfsStatus::kOk)
      return std::unexpected(status);
    // Another version may have this number here.
    if (files_.tree_check(handle.node) != handle.tree_check)
      return std::unexpected(NfsStatus::kStale);
    return NfsPlace{.exported = exported, .node = handle.node};
  }
  // There are few of them, and nobody works there.
  if (handle.node == root().node) return root();
  for (const NfsExport& exported : table_->exports()) {
    for (std::string path = parent_directory(exported.path); path != kRootDirectory;
         path = parent_directory(path)) {
      if (directory_number(path) == handle.node)
        return NfsPlace{.node = handle.node, .directory = path};
    }
  }
  return std::unexpected(NfsStatus::kStale);
}

NfsNode NfsView::directory_above(const std::string& path) const {
  const NodeNumber number = directory_number(path);
  return {.place = {.node = number, .directory = path},
          .attributes = {.number = number,
                         .kind = NodeKind::kDirectory,
                         .permissions = kDirectoryPermissions,
                         .modified = started_,
                         .lifetime = NodeLifetime::kShort},
          .mounted_on = number.value()};
}

NfsResult<NfsNode> NfsView::export_root(const RequestContext& context,
                                        const NfsExport& exported) const {
  if (const Status at_hand = AtHandOnly::may_wait(); !at_hand.ok())
    return std::unexpected(nfs_status_of(at_hand, NfsAttempt::kName));
  const Result<NodeAttributes> found = files_.resolve(context, exported.source);
  if (!found) {
    log_warn("an export cannot be shown", {{"path", exported.path},
                                           {"source", exported.source},
                                           {"error", found.error().to_string()}});
    return std::unexpected(nfs_status_of(found.error(), NfsAttempt::kName));
  }
  return NfsNode{.place = {.exported = &exported, .node = found->number},
                 .attributes = *found,
                 .mounted_on = directory_number(exported.path).value()};
}

NfsResult<NfsNode> NfsView::node(const RequestContext& context, const NfsPlace& place) const {
  if (place.exported == nullptr) return directory_above(place.directory);
  const Result<NodeAttributes> found = files_.attributes(context, place.node);
  if (!found) return std::unexpected(nfs_status_of(found.error(), NfsAttempt::kNode));
  return NfsNode{.place = place, .attributes = *found, .mounted_on = place.node.value()};
}

std::uint64_t NfsView::mounted_on(const RequestContext& context, const NfsNode& node) const {
  const NfsExport* const exported = node.place.exported;
  if (exported == nullptr || node.attributes.kind != NodeKind::kDirectory) return node.mounted_on;
  const Result<NodeAttributes> top = files_.resolve(context, exported->source);
  const bool is_top = top && top->number == node.place.node;
  return is_top ? directory_number(exported->path).value() : node.mounted_on;
}

NfsResult<NfsPlace> NfsView::lookup(const RequestContext& context, const NfsPlace& directory,
                                    std::string_view name) const {
  if (directory.exported != nullptr) {
    const Result<NodeAttributes> found = files_.lookup(context, directory.node, name);
    if (!found) return std::unexpected(nfs_status_of(found.error(), NfsAttempt::kName));
    return NfsPlace{.exported = directory.exported, .node = found->number};
  }
  const auto* const names = table_->names(directory.directory);
  if (names == nullptr) return std::unexpected(NfsStatus::kStale);
  const auto found = std::ranges::find(*names, name, &NfsExportName::name);
  if (found == names->end()) return std::unexpected(NfsStatus::kNoEnt);
  if (found->target == nullptr) return directory_above(joined(directory.directory, name)).place;
  if (const NfsStatus status = admit(*found->target); status != NfsStatus::kOk)
    return std::unexpected(status);
  const NfsResult<NfsNode> top = export_root(context, *found->target);
  if (!top) return std::unexpected(top.error());
  return top->place;
}

NfsResult<NfsPlace> NfsView::parent(const RequestContext& context, const NfsPlace& place) const {
  if (place.exported == nullptr) {
    if (place.directory == kRootDirectory) return std::unexpected(NfsStatus::kNoEnt);
    return directory_above(parent_directory(place.directory)).place;
  }
  const NfsResult<NfsNode> top = export_root(context, *place.exported);
  if (!top) return std::unexpected(top.error());
  if (top->place.node == place.node)
    return directory_above(parent_directory(place.exported->path)).place;
  const Result<NodeNumber> parent = files_.parent(context, place.node);
  if (!parent) return std::unexpected(nfs_status_of(parent.error(), NfsAttempt::kNode));
  return NfsPlace{.exported = place.exported, .node = *parent};
}

NfsStatus NfsView::read_directory(const RequestContext& context, const NfsPlace& directory,
                                  std::uint64_t cookie, const Visitor& visitor) const {
  if (directory.exported != nullptr) {
    NfsNode child;
    child.place.exported = directory.exported;
    const Status status =
        files_.read_directory(context, directory.node, cookie, [&](const NodeEntry& entry) {
          child.place.node = entry.attributes.number;
          child.attributes = entry.attributes;
          child.mounted_on = entry.attributes.number.value();
          child.has_attributes = entry.has_attributes;
          return visitor(entry.name, child, entry.cookie);
        });
    return nfs_status_of(status, NfsAttempt::kNode);
  }
  const auto* const names = table_->names(directory.directory);
  if (names == nullptr) return NfsStatus::kStale;
  for (std::uint64_t i = cookie; i < names->size(); ++i) {
    const NfsExportName& name = (*names)[i];
    if (name.target == nullptr) {
      const NfsNode child = directory_above(joined(directory.directory, name.name));
      if (!visitor(name.name, child, i + 1)) break;
    } else if (admit(*name.target) == NfsStatus::kOk) {
      // One that is broken must not hide the others.
      const NfsResult<NfsNode> child = export_root(context, *name.target);
      if (child && !visitor(name.name, *child, i + 1)) break;
    }
  }
  return NfsStatus::kOk;
}

NfsStatus NfsView::check(const NfsNode& node, WantedAccess wanted) const {
  Credentials caller = client_.caller.credentials;
  if (node.place.exported != nullptr) caller = node.place.exported->squashed(std::move(caller));
  const Status status = check_access(node.attributes, policy(), caller, wanted);
  return nfs_status_of(status, NfsAttempt::kNode);
}

}  // namespace millrace
