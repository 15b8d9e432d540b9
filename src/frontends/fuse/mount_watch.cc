#include "frontends/fuse/mount_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "platform/file_error.h"

namespace millrace {

Result<MountWatch> MountWatch::of(const std::string& directory) {
  File events = File::adopt(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK), "events of a mount");
  if (!events.is_open()) return failure(file_error(errno, "watch", directory));
  // The end of what is watched is told whatever is asked for; and this never happens on a mount
  // that nobody can write to.
  if (::inotify_add_watch(events.descriptor(), directory.c_str(), IN_MOVE_SELF | IN_ONLYDIR) < 0) {
    return failure(file_error(errno, "watch", directory));
  }
  return MountWatch(std::move(events));
}

bool MountWatch::has_ended() {
  alignas(inotify_event) std::array<std::byte, sizeof(inotify_event) + NAME_MAX + 1> event;
  // Whatever comes is its end: it was unmounted, and then the watch is gone.
  while (::read(events_.descriptor(), event.data(), event.size()) > 0)
    ended_ = true;
  return ended_;
}

}  // namespace millrace
