#include "frontends/fuse/fuse_operations.h"

namespace millrace {
namespace {

Result<NodeAttributes> attributes_of(const FuseCall& call) {
  FuseConnection& connection = call.connection();
  // The tree knows it no more once the store has another, or may have to ask the store. The kernel
  // wants it all the same, for each read that reaches behind the end.
  if (const std::shared_ptr<OpenFile> pinned = connection.pins.file(call.node())) {
    return pinned->attributes();
  }
  return connection.parts.tree.attributes(call.context(), call.node());
}

}  // namespace

void fuse_getattr(FuseCall call, const FuseRequest& /*request*/) {
  const Result<NodeAttributes> node = attributes_of(call);
  if (!node) return call.fail(node.error(), FuseAttempt::kNode);
  fuse_attr_out out{};
  out.attr_valid = FuseConnection::seconds(node->lifetime);
  out.attr = call.connection().attributes(*node);
  call.answer_with(out);
}

}  // namespace millrace
