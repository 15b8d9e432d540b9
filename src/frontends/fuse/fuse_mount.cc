#include "frontends/fuse/fuse_mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "base/log.h"
#include "frontends/fuse/fusermount.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

constexpr int kReadAheadKib = 1024;
constexpr unsigned long kMountFlags = MS_RDONLY | MS_NOSUID | MS_NODEV;
constexpr const char* kKind = "fuse.millrace";

Status no_device(int error) {
  if (error == ENOENT || error == ENXIO || error == ENODEV) {
    return {StatusCode::kNotFound,
            "this machine has no /dev/fuse: load the kernel module (modprobe fuse), or give the "
            "container the device (docker run --device /dev/fuse)"};
  }
  if (error == EACCES || error == EPERM) {
    return {
        StatusCode::kPermissionDenied,
        "this user may not open /dev/fuse: check the rights of the device (chmod 666 /dev/fuse), "
        "and that the container may use it (docker run --device /dev/fuse)"};
  }
  return file_error(error, "open", "/dev/fuse");
}

// A path as the kernel lists it, with "\040" for a space.
std::string unescaped(std::string_view listed) {
  std::string path;
  while (!listed.empty()) {
    const bool is_escape = listed.front() == '\\' && listed.size() >= 4;
    path += is_escape ? static_cast<char>(((listed[1] - '0') << 6) | ((listed[2] - '0') << 3) |
                                          (listed[3] - '0'))
                      : listed.front();
    listed.remove_prefix(is_escape ? 4 : 1);
  }
  return path;
}

// The kind of the topmost mount on a directory, "" when it has none. Does not ask the mount.
std::string mounted_kind(const std::string& directory) {
  std::ifstream list("/proc/self/mounts");
  std::string kind;
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line);
    std::string source;
    std::string place;
    std::string listed_kind;
    words >> source >> place >> listed_kind;
    if (unescaped(place) == directory) kind = listed_kind;
  }
  return kind;
}

// statfs and not stat, which the kernel answers for a dead mount with what it remembers.
bool is_dead(const std::string& directory) {
  struct statfs found{};
  return ::statfs(directory.c_str(), &found) != 0 && errno == ENOTCONN;
}

}  // namespace

bool is_fuse_mount(const std::string& directory) { return mounted_kind(directory) == kKind; }

Result<bool> remove_dead_mounts(const std::string& directory) {
  bool was_dead = false;
  while (is_dead(directory)) {
    if (!is_fuse_mount(directory)) {
      return failure(
          StatusCode::kConflict,
          fmt::format("'{0}' has a mount that nobody serves any more: run umount -l '{0}'",
                      directory));
    }
    MR_RETURN_IF_ERROR(unmount_fuse(directory, true));
    log_info("a mount that nobody served any more is taken away", {{"directory", directory}});
    was_dead = true;
  }
  return was_dead;
}

namespace {

Status check_directory(const std::string& directory) {
  struct stat found{};
  if (::stat(directory.c_str(), &found) != 0) return file_error(errno, "mount on", directory);
  if (!S_ISDIR(found.st_mode)) {
    return {StatusCode::kInvalidArgument, fmt::format("'{}' is not a directory", directory)};
  }
  return {};
}

Result<File> mount_as_root(const FuseMountRequest& request) {
  const int descriptor = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return failure(no_device(errno));
  File device = File::adopt(descriptor, "/dev/fuse");
  const std::string options =
      fmt::format("fd={},rootmode=40000,user_id={},group_id={},default_permissions,allow_other",
                  descriptor, ::geteuid(), ::getegid());
  if (::mount(request.source.c_str(), request.directory.c_str(), kKind, kMountFlags,
              options.c_str()) != 0) {
    if (errno == EPERM) {
      return failure(StatusCode::kPermissionDenied,
                     fmt::format("the kernel does not let us mount on '{}': check the "
                                 "capabilities, a container needs CAP_SYS_ADMIN (docker run "
                                 "--cap-add SYS_ADMIN)",
                                 request.directory));
    }
    return failure(file_error(errno, "mount on", request.directory));
  }
  return device;
}

}  // namespace

Result<File> mount_fuse(const FuseMountRequest& request) {
  MR_ASSIGN_OR_RETURN([[maybe_unused]] const bool was_dead, remove_dead_mounts(request.directory));
  MR_RETURN_IF_ERROR(check_directory(request.directory));
  if (::geteuid() == 0) return mount_as_root(request);
  if (::access("/dev/fuse", R_OK | W_OK) != 0) return failure(no_device(errno));
  return fusermount(request.directory,
                    fmt::format("ro,nosuid,nodev,default_permissions,fsname={},"
                                "subtype=millrace{}",
                                request.source, request.allow_other ? ",allow_other" : ""));
}

Status unmount_fuse(const std::string& directory, bool lazy) {
  if (const std::string kind = mounted_kind(directory); !kind.empty() && kind != kKind) {
    return {StatusCode::kConflict,
            fmt::format("'{0}' has something else mounted on it ({1}): unmount that first, with "
                        "umount '{0}'",
                        directory, kind)};
  }
  if (::geteuid() != 0) return fusermount_unmount(directory, lazy);
  if (::umount2(directory.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0) return {};
  switch (errno) {
    case EBUSY:
      return mount_in_use(directory);
    case EINVAL:
    case ENOENT:
      return nothing_mounted(directory);
    default:
      return file_error(errno, "unmount", directory);
  }
}

Status mount_in_use(const std::string& directory) {
  return {
      StatusCode::kConflict,
      fmt::format("'{0}' is in use: end what uses it (fuser -vm '{0}'), or take it out of sight "
                  "with --lazy",
                  directory)};
}

Status nothing_mounted(const std::string& directory) {
  return {StatusCode::kNotFound, fmt::format("nothing is mounted on '{}'", directory)};
}

Status forbid_execution(const std::string& directory) {
  if (::mount(nullptr, directory.c_str(), nullptr, MS_REMOUNT | MS_BIND | kMountFlags | MS_NOEXEC,
              nullptr) == 0) {
    return {};
  }
  return file_error(errno, "forbid execution on", directory);
}

void raise_readahead(const std::string& directory) {
  // Not stat(2): that would ask the file system, which nobody may serve yet.
  struct statx found{};
  if (::statx(AT_FDCWD, directory.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO,
              &found) != 0) {
    return;
  }
  std::ofstream file(
      fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", found.stx_dev_major, found.stx_dev_minor));
  file << kReadAheadKib << '\n';
}

}  // namespace millrace
