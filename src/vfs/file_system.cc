#include "vfs/file_system.h"

#include <utility>

#include "base/at_hand.h"
#include "vfs/file_system_root.h"
#include "vfs/node_number.h"

namespace millrace {
namespace {

// A tree that lives as long as the file system.
std::shared_ptr<Tree> borrowed(Tree& tree) {
  return std::shared_ptr<Tree>(std::shared_ptr<void>(), &tree);
}

}  // namespace

FileSystem::FileSystem(DatasetsTree& datasets, VersionTrees& versions, Tree* buckets,
                       FileSystemPolicy policy)
    : datasets_(datasets),
      versions_(versions),
      buckets_(policy.require_version ? nullptr : buckets),
      root_(std::make_shared<Root>(datasets_, buckets_, system_clock().wall_now())) {}

Result<std::shared_ptr<Tree>> FileSystem::tree(const RequestContext& context, NodeNumber node) {
  const NodePlace place = place_of(node);
  // Only versions know what of them is in memory; the others may use the disk at any time.
  if (place != NodePlace::kVersion) MR_RETURN_IF_ERROR(AtHandOnly::may_wait_for_disk());
  switch (place) {
    case NodePlace::kRoot:
      return root_;
    case NodePlace::kDatasets:
      return borrowed(datasets_);
    case NodePlace::kVersion: {
      MR_ASSIGN_OR_RETURN(std::shared_ptr<Tree> version, versions_.find(context, tree_of(node)));
      return version;
    }
    case NodePlace::kBuckets:
      if (buckets_ != nullptr) return borrowed(*buckets_);
      break;
    case NodePlace::kNowhere:
      break;
  }
  return failure(StatusCode::kNotFound, "there is no such node");
}

Result<NodeAttributes> FileSystem::attributes(const RequestContext& context, NodeNumber node) {
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<Tree> tree, this->tree(context, node));
  return tree->attributes(context, node);
}

Result<NodeAttributes> FileSystem::lookup(const RequestContext& context, NodeNumber directory,
                                          std::string_view name) {
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<Tree> tree, this->tree(context, directory));
  return tree->lookup(context, directory, name);
}

Result<NodeNumber> FileSystem::parent(const RequestContext& context, NodeNumber node) {
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<Tree> tree, this->tree(context, node));
  return tree->parent(context, node);
}

Status FileSystem::read_directory(const RequestContext& context, NodeNumber directory,
                                  std::uint64_t cookie, const Visitor& visitor) {
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<Tree> tree, this->tree(context, directory));
  return tree->read_directory(context, directory, cookie, visitor);
}

Result<std::string> FileSystem::read_link(const RequestContext& context, NodeNumber symlink) {
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<Tree> tree, this->tree(context, symlink));
  return tree->read_link(context, symlink);
}

Result<std::shared_ptr<OpenFile>> FileSystem::open(const RequestContext& context, NodeNumber file) {
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<Tree> tree, this->tree(context, file));
  return tree->open(context, file);
}

Result<std::vector<NodeFact>> FileSystem::facts(const RequestContext& context, NodeNumber node) {
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<Tree> tree, this->tree(context, node));
  return tree->facts(context, node);
}

Result<TreeUsage> FileSystem::usage(const RequestContext& context, NodeNumber node) {
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<Tree> tree, this->tree(context, node));
  return tree->usage(context, node);
}

std::optional<std::uint32_t> FileSystem::tree_check(NodeNumber node) const {
  if (place_of(node) != NodePlace::kVersion) return 0;
  return versions_.check_of(tree_of(node));
}

Status FileSystem::find_tree(const RequestContext& context, NodeNumber node, std::uint32_t check) {
  return datasets_.find_version(context, tree_of(node), check);
}

Result<NodeAttributes> FileSystem::resolve(const RequestContext& context, std::string_view path) {
  MR_ASSIGN_OR_RETURN(NodeAttributes node, attributes(context, root_node()));
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    path = slash == std::string_view::npos ? "" : path.substr(slash + 1);
    if (name.empty()) continue;
    MR_ASSIGN_OR_RETURN(node, lookup(context, node.number, name));
  }
  return node;
}

}  // namespace millrace
