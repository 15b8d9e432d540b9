#include <cerrno>

#include "base/file_name.h"
#include "frontends/fuse/fuse_operations.h"

namespace millrace {
namespace {

// Whether the mount shows the node, which may be any of the tree: anybody can make up a handle.
Status check_shown(FuseCall& call, NodeNumber node) {
  const NodeNumber root = call.connection().view.root;
  Status outside{StatusCode::kPreconditionFailed, "the node is not below this mount's root"};
  // The lists above versions need not be asked for what is in another.
  const bool is_in_version = place_of(root) == NodePlace::kVersion;
  while (node != root && root != root_node()) {
    if (node == root_node()) return outside;
    if (is_in_version && (place_of(node) != NodePlace::kVersion || tree_of(node) != tree_of(root)))
      return outside;
    MR_ASSIGN_OR_RETURN(node, call.connection().parts.tree.parent(call.context(), node));
  }
  return {};
}

// "." and ".." are asked for only by who comes back with a file handle (NFS over this mount).
Result<NodeAttributes> lookup_by_handle(FuseCall& call, std::string_view name) {
  Tree& tree = call.connection().parts.tree;
  NodeNumber node = call.node();
  if (name == "..") {
    MR_ASSIGN_OR_RETURN(node, tree.parent(call.context(), node));
  }
  MR_RETURN_IF_ERROR(check_shown(call, node));
  return tree.attributes(call.context(), node);
}

// Only who knows the directory can say that a name leads nowhere. In a version that is remembered,
// by node 0.
void answer_absent(FuseCall call, const Status& absent) {
  Tree& tree = call.connection().parts.tree;
  if (FuseConnection::name_lifetime(call.node()) == NodeLifetime::kForever) {
    const auto directory = tree.attributes(call.context(), call.node());
    if (!directory) return call.fail(directory.error(), FuseAttempt::kNode);
    fuse_entry_out nothing{};
    nothing.entry_valid = FuseConnection::seconds(NodeLifetime::kForever);
    return call.answer_with(nothing);
  }
  // Not its attributes, for which a store may be asked: what leads to a node does not know one that
  // is forgotten.
  const auto above = tree.parent(call.context(), call.node());
  if (!above) return call.fail(above.error(), FuseAttempt::kNode);
  call.fail(absent, FuseAttempt::kName);
}

}  // namespace

void fuse_lookup(FuseCall call, const FuseRequest& request) {
  const Result<std::string_view> name = request.name();
  if (!name) return call.fail(name.error(), FuseAttempt::kNode);
  if (name->size() > kFileNameBytesMax) return call.fail_with(ENAMETOOLONG);
  const bool is_handle = *name == "." || *name == "..";
  const Result<NodeAttributes> found =
      is_handle ? lookup_by_handle(call, *name)
                : call.connection().parts.tree.lookup(call.context(), call.node(), *name);
  if (found) return call.answer_with(call.connection().entry(call.node(), *found));
  if (is_handle) return call.fail(found.error(), FuseAttempt::kNode);
  if (found.error() == StatusCode::kNotFound) return answer_absent(std::move(call), found.error());
  call.fail(found.error(), FuseAttempt::kName);
}

}  // namespace millrace
