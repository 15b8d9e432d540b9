#include <cerrno>

#include "frontends/fuse/fuse_operations.h"

namespace millrace {

void fuse_opendir(FuseCall call, const FuseRequest& /*request*/) {
  // The kernel takes this as "never ask again, and keep the listings".
  if (call.connection().view.is_immutable) return call.fail_with(ENOSYS);
  fuse_kernel::OpenOut out;
  if (FuseConnection::name_lifetime(call.node()) == NodeLifetime::kForever) {
    out.open_flags = FOPEN_KEEP_CACHE | FOPEN_CACHE_DIR;
  }
  call.answer_with(out);
}

}  // namespace millrace
