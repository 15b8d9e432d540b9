#include "frontends/fuse/fuse_mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <expected>
#include <fstream>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "frontends/fuse/fusermount.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

constexpr int kReadAheadKib = 1024;

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

// Not stat(2): that would ask the file system, which nobody serves yet. Without a path it is that
// of the descriptor.
Result<std::string> number_of(int descriptor, const std::string& path) {
  struct statx found{};
  if (::statx(descriptor, path.c_str(), AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
              STATX_INO, &found) != 0) {
    return failure(file_error(errno, "find the mount on", path));
  }
  return fmt::format("{}:{}", found.stx_dev_major, found.stx_dev_minor);
}

// Of what was just mounted there. Where it cannot be told, as of a directory that was moved in that
// moment, nobody will serve it: it goes again.
Result<std::string> number_of_mounted(const std::string& directory) {
  Result<std::string> number = number_of(AT_FDCWD, directory);
  if (number) return number;
  if (::geteuid() == 0) {
    ::umount2(directory.c_str(), UMOUNT_NOFOLLOW | MNT_DETACH);
  } else {
    static_cast<void>(fusermount_unmount(directory, true));
  }
  return number;
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

Status cannot_mount(int error, const std::string& directory) {
  if (error != EPERM) return file_error(error, "mount on", directory);
  return {StatusCode::kPermissionDenied,
          fmt::format("the kernel does not let us mount on '{}': check the capabilities, a "
                      "container needs CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN)",
                      directory)};
}

// The file system of `device`, by what fsopen(2) gave. The error is the number of the first call
// that failed.
std::expected<File, int> configured(int file_system, const FuseMountRequest& request, int device) {
  // What the kernel takes; it is only shown to people.
  constexpr std::size_t kSourceBytesMax = 255;
  int error = 0;
  const auto configure = [&](unsigned what, const char* name, const char* value = nullptr) {
    if (error == 0 && ::fsconfig(file_system, what, name, value, 0) != 0) error = errno;
  };
  const auto set = [&](const char* name, const std::string& value) {
    configure(FSCONFIG_SET_STRING, name, value.c_str());
  };
  set("source", request.source.substr(0, kSourceBytesMax));
  set("subtype", kMountSubtype);
  set("fd", std::to_string(device));
  set("rootmode", "40000");
  set("user_id", std::to_string(::geteuid()));
  set("group_id", std::to_string(::getegid()));
  for (const char* flag : {"default_permissions", "allow_other", "ro"})
    configure(FSCONFIG_SET_FLAG, flag);
  configure(FSCONFIG_CMD_CREATE, nullptr);
  if (error != 0) return std::unexpected(error);
  unsigned attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (request.noexec) attributes |= MOUNT_ATTR_NOEXEC;
  const int made = ::fsmount(file_system, FSMOUNT_CLOEXEC, attributes);
  if (made < 0) return std::unexpected(errno);
  return File::adopt(made, "file system");
}

// In one step: for kernels before 5.2, and containers whose filter of system calls is as old.
Status mount_at_once(const FuseMountRequest& request, int device) {
  const std::string options =
      fmt::format("fd={},rootmode=40000,user_id={},group_id={},default_permissions,allow_other",
                  device, ::geteuid(), ::getegid());
  unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV;
  if (request.noexec) flags |= MS_NOEXEC;
  if (::mount(request.source.c_str(), request.directory.c_str(), kMountKind, flags,
              options.c_str()) == 0) {
    return {};
  }
  return cannot_mount(errno, request.directory);
}

Result<MadeFuse> make_as_root(const FuseMountRequest& request) {
  const int device = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) return failure(no_device(errno));
  MadeFuse made;
  made.device = File::adopt(device, "/dev/fuse");
  const int opened = ::fsopen("fuse", FSOPEN_CLOEXEC);
  if (opened < 0) {
    MR_RETURN_IF_ERROR(mount_at_once(request, device));
    MR_ASSIGN_OR_RETURN(made.number, number_of_mounted(request.directory));
    return made;
  }
  const File context = File::adopt(opened, "fuse");
  auto unplaced = configured(opened, request, device);
  if (!unplaced) return failure(cannot_mount(unplaced.error(), request.directory));
  made.unplaced = *std::move(unplaced);
  MR_ASSIGN_OR_RETURN(made.number, number_of(made.unplaced.descriptor(), ""));
  return made;
}

Result<MadeFuse> make_by_fusermount(const FuseMountRequest& request) {
  if (::access("/dev/fuse", R_OK | W_OK) != 0) return failure(no_device(errno));
  MadeFuse made;
  MR_ASSIGN_OR_RETURN(
      made.device,
      fusermount(
          request.directory,
          fmt::format("ro,nosuid,nodev,default_permissions,fsname={},subtype={}{}{}",
                      escaped(request.source), kMountSubtype,
                      request.allow_other ? ",allow_other" : "", request.noexec ? ",noexec" : "")));
  MR_ASSIGN_OR_RETURN(made.number, number_of_mounted(request.directory));
  return made;
}

}  // namespace

Result<MadeFuse> make_fuse(const FuseMountRequest& request) {
  MR_ASSIGN_OR_RETURN([[maybe_unused]] const bool was_dead, remove_dead_mounts(request.directory));
  MR_RETURN_IF_ERROR(check_not_mounted(request.directory));
  MR_RETURN_IF_ERROR(check_directory(request.directory));
  return ::geteuid() == 0 ? make_as_root(request) : make_by_fusermount(request);
}

Status place_fuse(MadeFuse& made, const std::string& directory) {
  if (!made.unplaced.is_open()) return {};
  const File unplaced = std::move(made.unplaced);
  if (::move_mount(unplaced.descriptor(), "", AT_FDCWD, directory.c_str(),
                   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS) == 0) {
    return {};
  }
  return cannot_mount(errno, directory);
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

void raise_readahead(const std::string& number) {
  std::ofstream file(fmt::format("/sys/class/bdi/{}/read_ahead_kb", number));
  file << kReadAheadKib << '\n';
}

}  // namespace millrace
