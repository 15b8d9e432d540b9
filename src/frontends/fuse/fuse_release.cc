#include "frontends/fuse/fuse_operations.h"

namespace millrace {

void fuse_release(FuseCall call, const FuseRequest& request) {
  const Result<fuse_release_in> in = request.body<fuse_release_in>();
  if (!in) return call.fail(in.error(), FuseAttempt::kNode);
  call.connection().files.release(in->fh);
  call.connection().pins.remove(call.node(), in->fh);
  call.answer();
}

}  // namespace millrace
