#pragma once

#include "base/status.h"
#include "frontends/fuse/fuse_connection.h"
#include "frontends/fuse/fuse_request.h"

namespace millrace {

// What both sides agree on at the start of a mount. kUnsupported for a kernel before Linux 5.4.
Result<fuse_kernel::InitOut> fuse_init_answer(const FuseRequest& request, const FuseView& view);

}  // namespace millrace
