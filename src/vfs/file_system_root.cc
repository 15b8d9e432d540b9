#include "vfs/file_system_root.h"

#include <fmt/format.h>

namespace millrace {

FileSystem::Root::Root(Tree& datasets, Tree* buckets, WallTime started) : started_(started) {
  if (buckets != nullptr) children_.push_back({"buckets", buckets_node(), buckets, 1});
  children_.push_back({"datasets", datasets_node(), &datasets, 2});
}

Result<NodeAttributes> FileSystem::Root::attributes(const RequestContext& /*context*/,
                                                    NodeNumber node) {
  return NodeAttributes{.number = node,
                        .kind = NodeKind::kDirectory,
                        .permissions = 0555,
                        .modified = started_,
                        .lifetime = NodeLifetime::kShort};
}

Result<NodeAttributes> FileSystem::Root::lookup(const RequestContext& context,
                                                NodeNumber /*directory*/, std::string_view name) {
  for (const Child& child : children_) {
    if (child.name == name) return child.tree->attributes(context, child.number);
  }
  return failure(StatusCode::kNotFound, fmt::format("there is no '/{}'", name));
}

Result<NodeNumber> FileSystem::Root::parent(const RequestContext& /*context*/,
                                            NodeNumber /*node*/) {
  return root_node();
}

Status FileSystem::Root::read_directory(const RequestContext& context, NodeNumber /*directory*/,
                                        std::uint64_t cookie, const Visitor& visitor) {
  for (const Child& child : children_) {
    if (child.cookie <= cookie) continue;
    MR_ASSIGN_OR_RETURN(const NodeAttributes attributes,
                        child.tree->attributes(context, child.number));
    if (!visitor({.name = child.name, .attributes = attributes, .cookie = child.cookie})) break;
  }
  return {};
}

Result<std::string> FileSystem::Root::read_link(const RequestContext& /*context*/,
                                                NodeNumber /*symlink*/) {
  return failure(StatusCode::kInvalidArgument, "this is no symlink");
}

Result<std::shared_ptr<OpenFile>> FileSystem::Root::open(const RequestContext& /*context*/,
                                                         NodeNumber /*file*/) {
  return failure(StatusCode::kInvalidArgument, "only a file can be opened");
}

Result<std::vector<NodeFact>> FileSystem::Root::facts(const RequestContext& /*context*/,
                                                      NodeNumber /*node*/) {
  return std::vector<NodeFact>();
}

Result<TreeUsage> FileSystem::Root::usage(const RequestContext& /*context*/, NodeNumber /*node*/) {
  return TreeUsage();
}

}  // namespace millrace
