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

Status about_manifest(const std::string& version, const Status& why) {
  if (why != StatusCode::kNotFound) return why;
  return {StatusCode::kIoError,
          fmt::format("the manifest of {} is gone from the store: {}", version, why.message())};
}

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

template <class Read>
auto VersionTree::ask(const RequestContext& context, NodeNumber node, Read read)
    -> decltype(read(std::declval<const Manifest&>())) {
  const CurrentRequest current(context);
  const std::shared_ptr<const VersionObjects> known = objects();
  if (entry_of(node) >= known->manifest().entries()) {
    return failure(StatusCode::kNotFound, fmt::format("{} has no such node", name()));
  }
  auto found = read(known->manifest());
  if (found || found.error() != StatusCode::kNotFound) return found;
  const Result<std::shared_ptr<const VersionObjects>> newer = newer_than(context, known);
  if (!newer) return failure(about_manifest(name(), newer.error()));
  if (*newer != nullptr) found = read((*newer)->manifest());
  if (!found) found = failure(about_manifest(name(), found.error()));
  return found;
}

Result<NodeAttributes> VersionTree::attributes(const RequestContext& context, NodeNumber node) {
  return ask(context, node, [&](const Manifest& manifest) -> Result<NodeAttributes> {
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest.entry(entry_of(node)));
    return attributes_of(entry);
  });
}

Result<NodeAttributes> VersionTree::lookup(const RequestContext& context, NodeNumber directory,
                                           std::string_view name) {
  using Child = std::optional<NodeAttributes>;
  MR_ASSIGN_OR_RETURN(const Child child,
                      ask(context, directory, [&](const Manifest& manifest) -> Result<Child> {
                        MR_ASSIGN_OR_RETURN(const std::optional<EntryIndex> index,
                                            manifest.find(entry_of(directory), name));
                        if (!index) return std::nullopt;
                        MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest.entry(*index));
                        return attributes_of(entry);
                      }));
  if (child) return *child;
  return failure(StatusCode::kNotFound, fmt::format("{} has no '{}' there", this->name(), name));
}

Result<NodeNumber> VersionTree::parent(const RequestContext& context, NodeNumber node) {
  if (node == root()) return identity_.parent;
  return ask(context, node, [&](const Manifest& manifest) -> Result<NodeNumber> {
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest.entry(entry_of(node)));
    return version_node(identity_.number, entry.parent());
  });
}

Status VersionTree::read_directory(const RequestContext& context, NodeNumber directory,
                                   std::uint64_t cookie, const Visitor& visitor) {
  // Outside, so that a newer layout goes on where this one ended.
  std::uint64_t place = cookie;
  const auto show = [&](const Manifest& manifest) -> Result<bool> {
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest.entry(entry_of(directory)));
    if (entry.kind() != EntryKind::kDirectory) {
      return failure(StatusCode::kInvalidArgument, "only a directory has entries");
    }
    MR_ASSIGN_OR_RETURN(const ChildRange children, manifest.children(entry));
    while (place < children.count()) {
      const EntryIndex index = children.first + static_cast<EntryIndex>(place);
      MR_ASSIGN_OR_RETURN(const ManifestEntry child, manifest.entry(index));
      MR_ASSIGN_OR_RETURN(const std::string_view name, manifest.name(child));
      ++place;
      if (!visitor({.name = name, .attributes = attributes_of(child), .cookie = place})) break;
    }
    return true;
  };
  const Result<bool> shown = ask(context, directory, show);
  return shown ? Status() : shown.error();
}

Result<std::string> VersionTree::read_link(const RequestContext& context, NodeNumber symlink) {
  return ask(context, symlink, [&](const Manifest& manifest) -> Result<std::string> {
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest.entry(entry_of(symlink)));
    MR_ASSIGN_OR_RETURN(const std::string_view target, manifest.symlink_target(entry));
    return std::string(target);
  });
}

Result<std::shared_ptr<OpenFile>> VersionTree::open(const RequestContext& context,
                                                    NodeNumber file) {
  return ask(context, file, [&](const Manifest& manifest) -> Result<std::shared_ptr<OpenFile>> {
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest.entry(entry_of(file)));
    if (entry.kind() != EntryKind::kFile) {
      return failure(StatusCode::kInvalidArgument, "only a file can be opened");
    }
    return std::make_shared<VersionFile>(shared_from_this(), entry, context.caller());
  });
}

Result<std::vector<NodeFact>> VersionTree::facts(const RequestContext& context, NodeNumber node) {
  using Facts = std::vector<NodeFact>;
  return ask(context, node, [&](const Manifest& manifest) -> Result<Facts> {
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest.entry(entry_of(node)));
    Facts facts{{"version", ref().text()},
                {"digest", "sha256:" + to_hex(manifest.content_digest())}};
    if (entry.kind() == EntryKind::kFile) {
      MR_ASSIGN_OR_RETURN(std::string cached,
                          VersionFile(shared_from_this(), entry, nullptr).cached(context));
      facts.push_back({"cached", std::move(cached)});
    }
    return facts;
  });
}

Result<TreeUsage> VersionTree::usage(const RequestContext& /*context*/, NodeNumber /*node*/) {
  const std::shared_ptr<const VersionObjects> known = objects();
  return TreeUsage{.bytes = known->manifest().totals().logical_bytes,
                   .nodes = known->manifest().entries()};
}

}  // namespace millrace
