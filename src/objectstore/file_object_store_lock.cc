#include "objectstore/file_object_store_lock.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/checksum.h"
#include "objectstore/file_object_store_keys.h"
#include "platform/file_error.h"

namespace millrace::file_object_store {

Result<KeyLock> KeyLock::acquire(const RequestContext& context, Clock& clock, const Tree& tree,
                                 const ObjectKey& key) {
  Result<File> opened =
      File::open(std::string(kLockFile), O_RDWR | O_CREAT | O_NOFOLLOW, 0666, tree.root());
  if (!opened) return failure(opened.error().with_context(tree.root_path()));
  File file = std::move(*opened);
  struct flock request{};
  request.l_type = F_WRLCK;
  request.l_whence = SEEK_SET;
  request.l_start = static_cast<off_t>(crc64nvme(as_bytes(key.value())) >> 2);
  request.l_len = 1;
  // The kernel can also wait for us, but then neither deadline nor cancellation would be heard. A
  // holder needs microseconds, so few tries ever come to the long pauses.
  Duration pause = std::chrono::microseconds(50);
  constexpr Duration kPauseMax = std::chrono::milliseconds(5);
  for (;;) {
    MR_RETURN_IF_ERROR(context.check(clock));
    if (::fcntl(file.descriptor(), F_OFD_SETLK, &request) == 0) return KeyLock(std::move(file));
    if (errno == EINVAL || errno == ENOLCK || errno == EOPNOTSUPP) {
      return failure(StatusCode::kUnsupported,
                     fmt::format("the file system of '{}' has no file locks, without which writes "
                                 "of several processes cannot be told apart",
                                 tree.root_path()));
    }
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
      return failure(file_error(errno, "lock", tree.root_path()));
    }
    clock.sleep_until(std::min(clock.now() + pause, context.deadline()), &context.cancellation());
    pause = std::min(pause * 2, kPauseMax);
  }
}

}  // namespace millrace::file_object_store
