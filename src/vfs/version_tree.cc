#include "vfs/version_tree.h"

#include <utility>

#include <fmt/format.h>

#include "base/current_request.h"
#include "base/hex.h"
#include "vfs/version_file.h"

namespace millrace {
namespace {

// Where nobody recorded permissions: everybody may read, since nobody may write.
constexpr std::uint16_t kDirectoryPermissions = 0555;
constexpr std::uint16_t kFilePermissions = 0444;
constexpr std::uint16_t kSymlinkPermissions = 0777;

NodeKind node_kind(EntryKind kind) {
  switch (kind) {
    case EntryKind::kDirectory:
      return NodeKind::kDirectory;
    case EntryKind::kSymlink:
      return NodeKind::kSymlink;
    case EntryKind::kFile:
      break;
  }
  return NodeKind::kFile;
}

std::uint16_t permissions_of(const ManifestEntry& entry) {
  if (entry.kind() == EntryKind::kSymlink) return kSymlinkPermissions;
  return entry.mode().value_or(entry.kind() == EntryKind::kDirectory ? kDirectoryPermissions
                                                                     : kFilePermissions);
}

}  // namespace

VersionTree::VersionTree(Identity identity, std::shared_ptr<const Manifest> manifest, Reopen reopen,
                         VersionReads reads)
    : identity_(std::move(identity)),
      reopen_(std::move(reopen)),
      reads_(std::move(reads)),
      objects_(objects_of(std::move(manifest))) {}

std::shared_ptr<const VersionObjects> VersionTree::objects_of(
    std::shared_ptr<const Manifest> manifest) const {
  return std::make_shared<VersionObjects>(std::move(manifest), identity_.store, reads_.cache,
                                          reads_.other_stores);
}

std::shared_ptr<const VersionObjects> VersionTree::objects() const {
  MutexLock lock(mutex_);
  return objects_;
}

Result<std::shared_ptr<const VersionObjects>> VersionTree::newer_than(
    const RequestContext& context, const std::shared_ptr<const VersionObjects>& stale) {
  if (std::shared_ptr<const VersionObjects> now = objects(); now != stale) return now;
  MR_ASSIGN_OR_RETURN(std::shared_ptr<const Manifest> newest, reopen_(context));
  MutexLock lock(mutex_);
  if (objects_ != stale) return objects_;
  if (newest == nullptr || newest == stale->shared_manifest()) return nullptr;
  objects_ = objects_of(std::move(newest));
  return objects_;
}

NodeAttributes VersionTree::attributes_of(const ManifestEntry& entry) const {
  return {.number = version_node(identity_.number, entry.index()),
          .kind = node_kind(entry.kind()),
          .permissions = permissions_of(entry),
          .size = entry.size(),
          .modified = WallTime(std::chrono::duration_cast<WallTime::duration>(
              std::chrono::nanoseconds(entry.mtime_ns()))),
          .lifetime = NodeLifetime::kForever};
}

Result<NodeAttributes> VersionTree::attributes(const RequestContext& context, NodeNumber node) {
  const CurrentRequest current(context);
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest()->entry(entry_of(node)));
  return attributes_of(entry);
}

Result<NodeAttributes> VersionTree::lookup(const RequestContext& context, NodeNumber directory,
                                           std::string_view name) {
  const CurrentRequest current(context);
  const std::shared_ptr<const Manifest> manifest = this->manifest();
  MR_ASSIGN_OR_RETURN(const std::optional<EntryIndex> child,
                      manifest->find(entry_of(directory), name));
  if (!child) {
    return failure(StatusCode::kNotFound, fmt::format("{} has no '{}' there", this->name(), name));
  }
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest->entry(*child));
  return attributes_of(entry);
}

Result<NodeNumber> VersionTree::parent(const RequestContext& context, NodeNumber node) {
  const CurrentRequest current(context);
  if (node == root()) return identity_.parent;
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest()->entry(entry_of(node)));
  return version_node(identity_.number, entry.parent());
}

Status VersionTree::read_directory(const RequestContext& context, NodeNumber directory,
                                   std::uint64_t cookie, const Visitor& visitor) {
  const CurrentRequest current(context);
  const std::shared_ptr<const Manifest> manifest = this->manifest();
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest->entry(entry_of(directory)));
  if (entry.kind() != EntryKind::kDirectory) {
    return {StatusCode::kInvalidArgument, "only a directory has entries"};
  }
  MR_ASSIGN_OR_RETURN(const ChildRange children, manifest->children(entry));
  for (std::uint64_t place = cookie; place < children.count(); ++place) {
    const EntryIndex index = children.first + static_cast<EntryIndex>(place);
    MR_ASSIGN_OR_RETURN(const ManifestEntry child, manifest->entry(index));
    MR_ASSIGN_OR_RETURN(const std::string_view name, manifest->name(child));
    if (!visitor({.name = name, .attributes = attributes_of(child), .cookie = place + 1})) break;
  }
  return {};
}

Result<std::string> VersionTree::read_link(const RequestContext& context, NodeNumber symlink) {
  const CurrentRequest current(context);
  const std::shared_ptr<const Manifest> manifest = this->manifest();
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest->entry(entry_of(symlink)));
  MR_ASSIGN_OR_RETURN(const std::string_view target, manifest->symlink_target(entry));
  return std::string(target);
}

Result<std::shared_ptr<OpenFile>> VersionTree::open(const RequestContext& context,
                                                    NodeNumber file) {
  const CurrentRequest current(context);
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest()->entry(entry_of(file)));
  if (entry.kind() != EntryKind::kFile) {
    return failure(StatusCode::kInvalidArgument, "only a file can be opened");
  }
  return std::make_shared<VersionFile>(shared_from_this(), entry, context.caller());
}

Result<std::vector<NodeFact>> VersionTree::facts(const RequestContext& context, NodeNumber node) {
  const CurrentRequest current(context);
  const std::shared_ptr<const Manifest> manifest = this->manifest();
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest->entry(entry_of(node)));
  std::vector<NodeFact> facts{{"version", ref().text()},
                              {"digest", "sha256:" + to_hex(manifest->content_digest())}};
  if (entry.kind() == EntryKind::kFile) {
    MR_ASSIGN_OR_RETURN(std::string cached,
                        VersionFile(shared_from_this(), entry, nullptr).cached(context));
    facts.push_back({"cached", std::move(cached)});
  }
  return facts;
}

Result<TreeUsage> VersionTree::usage(const RequestContext& /*context*/, NodeNumber /*node*/) {
  const std::shared_ptr<const Manifest> manifest = this->manifest();
  return TreeUsage{.bytes = manifest->totals().logical_bytes, .nodes = manifest->entries()};
}

}  // namespace millrace
