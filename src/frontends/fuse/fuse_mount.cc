#include "frontends/fuse/fuse_mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "base/log.h"
#include "frontends/fuse/fusermount.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

constexpr int kReadAheadKib = 1024;
constexpr unsigned long kMountFlags = MS_RDONLY | MS_NOSUID | MS_NODEV;

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

// statfs and not stat, which the kernel answers for a dead mount with what it remembers.
bool is_dead(const std::string& directory) {
  struct statfs found{};
  return ::statfs(directory.c_str(), &found) != 0 && errno == ENOTCONN;
}

}  // namespace

Result<bool> remove_dead_mounts(const std::string& directory) {
  bool was_dead = false;
  while (is_dead(directory)) {
    const std::optional<ListedMount> dead = uppermost_mount(directory);
    if (!dead || dead->kind != kMountKind) {
      return failure(
          StatusCode::kConflict,
          fmt::format("'{0}' has a mount that nobody serves any more: run umount -l '{0}'",
                      directory));
    }
    MR_RETURN_IF_ERROR(unmount_fuse(*dead, true));
    log_info("a mount that nobody served any more is taken away", {{"directory", directory}});
    was_dead = true;
  }
  return was_dead;
}

namespace {

// A daemon of other settings may serve it.
Status check_not_mounted(const std::string& directory) {
  const std::optional<ListedMount> there = uppermost_mount(directory);
  if (!there || there->kind != kMountKind) return {};
  return {StatusCode::kConflict,
          fmt::format("'{0}' shows {1} already, by another daemon: unmount it there, or with "
                      "umount '{0}'",
                      directory, there->source)};
}

// Not stat(2): that would ask the file system, which nobody serves yet.
Result<std::string> number_of(const std::string& directory) {
  struct statx found{};
  if (::statx(AT_FDCWD, directory.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO,
              &found) != 0) {
    return failure(file_error(errno, "find the mount on", directory));
  }
  return fmt::format("{}:{}", found.stx_dev_major, found.stx_dev_minor);
}

Status check_directory(const std::string& directory) {
  struct stat found{};
  if (::stat(directory.c_str(), &found) != 0) return file_error(errno, "mount on", directory);
  if (!S_ISDIR(found.st_mode)) {
    return {StatusCode::kInvalidArgument, fmt::format("'{}' is not a directory", directory)};
  }
  return {};
}

// As an option of fusermount3: a comma would begin the next one.
std::string escaped(std::string_view source) {
  std::string text;
  for (const char c : source) {
    if (c == ',' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

Result<File> mount_as_root(const FuseMountRequest& request) {
  const int descriptor = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return failure(no_device(errno));
  File device = File::adopt(descriptor, "/dev/fuse");
  const std::string options =
      fmt::format("fd={},rootmode=40000,user_id={},group_id={},default_permissions,allow_other",
                  descriptor, ::geteuid(), ::getegid());
  if (::mount(request.source.c_str(), request.directory.c_str(), kMountKind, kMountFlags,
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

Result<MountedFuse> mount_fuse(const FuseMountRequest& request) {
  MR_ASSIGN_OR_RETURN([[maybe_unused]] const bool was_dead, remove_dead_mounts(request.directory));
  MR_RETURN_IF_ERROR(check_not_mounted(request.directory));
  MR_RETURN_IF_ERROR(check_directory(request.directory));
  MountedFuse mounted;
  if (::geteuid() == 0) {
    MR_ASSIGN_OR_RETURN(mounted.device, mount_as_root(request));
  } else {
    if (::access("/dev/fuse", R_OK | W_OK) != 0) return failure(no_device(errno));
    MR_ASSIGN_OR_RETURN(
        mounted.device,
        fusermount(
            request.directory,
            fmt::format("ro,nosuid,nodev,default_permissions,fsname={},subtype=millrace{}",
                        escaped(request.source), request.allow_other ? ",allow_other" : "")));
  }
  MR_ASSIGN_OR_RETURN(mounted.number, number_of(request.directory));
  return mounted;
}

Status unmount_fuse(const ListedMount& mount, bool lazy) {
  const std::string& directory = mount.directory;
  const std::optional<ListedMount> uppermost = uppermost_mount(directory);
  if (uppermost && uppermost->number != mount.number) {
    return {StatusCode::kConflict,
            fmt::format("'{0}' has something else mounted on it ({1}): unmount that first, with "
                        "umount '{0}'",
                        directory, uppermost->kind)};
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

Status detach_fuse(std::string_view number) {
  Status first;
  for (const ListedMount& place : places_of(number)) {
    const Status status = unmount_fuse(place, true);
    if (first.ok()) first = status;
  }
  return first;
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

void raise_readahead(const std::string& number) {
  std::ofstream file(fmt::format("/sys/class/bdi/{}/read_ahead_kb", number));
  file << kReadAheadKib << '\n';
}

}  // namespace millrace
