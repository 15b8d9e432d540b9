#include "frontends/fuse/fuse_operations.h"

namespace millrace {

void fuse_readlink(FuseCall call, const FuseRequest& /*request*/) {
  const Result<std::string> target =
      call.connection().parts.tree.read_link(call.context(), call.node());
  if (!target) return call.fail(target.error(), FuseAttempt::kNode);
  call.answer(std::as_bytes(std::span(*target)));
}

}  // namespace millrace
