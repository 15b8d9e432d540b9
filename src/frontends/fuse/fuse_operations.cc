#include "frontends/fuse/fuse_operations.h"

#include <cerrno>

namespace millrace {
namespace {

// The file system cannot be written. The kernel knows that of a mount that is read only, and asks
// no more; this is for mounts that somebody made writable again.
void fuse_refuse_write(FuseCall call, const FuseRequest& /*request*/) { call.fail_with(EROFS); }

// There is nothing to keep for a directory that is open.
void fuse_releasedir(FuseCall call, const FuseRequest& /*request*/) { call.answer(); }

// Nothing is ever dirty.
void fuse_sync(FuseCall call, const FuseRequest& /*request*/) { call.answer(); }

}  // namespace

FuseHandler fuse_handler(std::uint32_t opcode) {
  using enum FuseMetricOperation;
  switch (opcode) {
    case FUSE_LOOKUP:
      return {fuse_lookup, kLookup};
    case FUSE_GETATTR:
      return {fuse_getattr, kGetattr};
    case FUSE_READLINK:
      return {fuse_readlink, kReadlink};
    case FUSE_OPEN:
      return {fuse_open, kOpen};
    case FUSE_READ:
      return {fuse_read, kRead};
    case FUSE_RELEASE:
      return {fuse_release, kRelease};
    case FUSE_STATFS:
      return {fuse_statfs, kStatfs};
    case FUSE_OPENDIR:
      return {fuse_opendir, kOpendir};
    case FUSE_READDIR:
      return {fuse_readdir, kReaddir};
    case FUSE_READDIRPLUS:
      return {fuse_readdirplus, kReaddir};
    case FUSE_RELEASEDIR:
      return {fuse_releasedir, kOther};
    case FUSE_FSYNC:
    case FUSE_FSYNCDIR:
      return {fuse_sync, kOther};
    case FUSE_GETXATTR:
      return {fuse_getxattr, kXattr};
    case FUSE_LISTXATTR:
      return {fuse_listxattr, kXattr};
    case FUSE_SETATTR:
    case FUSE_SYMLINK:
    case FUSE_MKNOD:
    case FUSE_MKDIR:
    case FUSE_UNLINK:
    case FUSE_RMDIR:
    case FUSE_RENAME:
    case FUSE_RENAME2:
    case FUSE_LINK:
    case FUSE_WRITE:
    case FUSE_CREATE:
    case FUSE_TMPFILE:
    case FUSE_FALLOCATE:
    case FUSE_COPY_FILE_RANGE:
    case FUSE_SETXATTR:
    case FUSE_REMOVEXATTR:
      return {fuse_refuse_write, kOther};
    default:
      return {};
  }
}

}  // namespace millrace
