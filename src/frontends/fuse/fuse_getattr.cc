#include "frontends/fuse/fuse_operations.h"

namespace millrace {

void fuse_getattr(FuseCall call, const FuseRequest& /*request*/) {
  const FuseConnection& connection = call.connection();
  const Result<NodeAttributes> node = connection.parts.tree.attributes(call.context(), call.node());
  if (!node) return call.fail(node.error(), FuseAttempt::kNode);
  fuse_attr_out out{};
  out.attr_valid = FuseConnection::seconds(node->lifetime);
  out.attr = connection.attributes(*node);
  call.answer_with(out);
}

}  // namespace millrace
