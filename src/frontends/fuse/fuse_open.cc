#include <fcntl.h>

#include <cerrno>

#include "frontends/fuse/fuse_operations.h"

namespace millrace {

void fuse_open(FuseCall call, const FuseRequest& request) {
  const Result<fuse_open_in> in = request.body<fuse_open_in>();
  if (!in) return call.fail(in.error(), FuseAttempt::kNode);
  if ((in->flags & O_ACCMODE) != O_RDONLY) return call.fail_with(EROFS);
  FuseConnection& connection = call.connection();
  // The kernel takes this as "never ask again", for the life of the mount.
  if (connection.view.opening == FuseOpening::kStateless) return call.fail_with(ENOSYS);

  // Found first: what can be exhausted afterwards is the table of open files alone.
  const auto file = connection.file(call.context(), call.node());
  if (!file) return call.fail(file.error(), FuseAttempt::kNode);
  const Result<FuseOpened> opened =
      connection.files.open(call.context(), call.node(), call.unique());
  if (!opened) return call.fail(opened.error(), FuseAttempt::kOpen);
  const std::uint64_t handle =
      connection.pins.add(call.node(), *file, opened->handle, call.unique());
  fuse_kernel::OpenOut out{.fh = handle, .open_flags = FOPEN_NOFLUSH};
  if (opened->backing != 0) {
    out.open_flags |= fuse_kernel::kOpenPassthrough;
    out.backing_id = opened->backing;
  } else {
    // What a node reads never changes: another content is another node.
    out.open_flags |= FOPEN_KEEP_CACHE;
  }
  call.answer_with(out);
}

}  // namespace millrace
