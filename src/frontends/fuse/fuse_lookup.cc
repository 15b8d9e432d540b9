#include "frontends/fuse/fuse_operations.h"

namespace millrace {
namespace {

// "." and ".." are asked for only by who comes back with a file handle (NFS over this mount).
Result<NodeAttributes> lookup_from(FuseCall& call, std::string_view name) {
  Tree& tree = call.connection().parts.tree;
  if (name == ".") return tree.attributes(call.context(), call.node());
  if (name != "..") return tree.lookup(call.context(), call.node(), name);
  MR_ASSIGN_OR_RETURN(const NodeNumber parent, tree.parent(call.context(), call.node()));
  return tree.attributes(call.context(), parent);
}

}  // namespace

void fuse_lookup(FuseCall call, const FuseRequest& request) {
  const Result<std::string_view> name = request.name();
  if (!name) return call.fail(name.error(), FuseAttempt::kNode);
  const Result<NodeAttributes> found = lookup_from(call, *name);
  if (found) return call.answer_with(call.connection().entry(call.node(), *found));

  const NodeLifetime lifetime = FuseConnection::name_lifetime(call.node());
  if (found.error() != StatusCode::kNotFound || lifetime != NodeLifetime::kForever) {
    return call.fail(found.error(), FuseAttempt::kName);
  }
  // Node 0 is a name that leads nowhere, and may be remembered.
  fuse_entry_out nothing{};
  nothing.entry_valid = FuseConnection::seconds(lifetime);
  call.answer_with(nothing);
}

}  // namespace millrace
