#include "objectstore/file_object_store_tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "platform/file_error.h"
#include "platform/path.h"
#include "platform/posix_disk.h"

namespace millrace::file_object_store {
namespace {

// Above what races between makers and removers of a directory can need.
constexpr int kAttemptsMax = 1000;

std::string_view parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

bool means_absent(int error) {
  // A name below a file, a link, a socket without listener, a name that is too long: no object.
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENXIO ||
         error == ENAMETOOLONG;
}

Status absent(const std::string& path) {
  return {StatusCode::kNotFound, fmt::format("'{}' does not exist", path)};
}

}  // namespace

int open_beneath_by_steps(int root, const std::string& path, int flags) {
  File directory;
  int at = root;
  std::string_view rest = path;
  for (;;) {
    const std::size_t slash = rest.find('/');
    const std::string name(rest.substr(0, slash));
    const bool last = slash == std::string_view::npos;
    const int step_flags = last ? flags : O_PATH | O_DIRECTORY;
    const int descriptor =
        ::openat(at, name.empty() ? "." : name.c_str(), step_flags | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0) return -errno;
    if (last) return descriptor;
    directory = File::adopt(descriptor, name);
    at = directory.descriptor();
    rest.remove_prefix(slash + 1);
  }
}

int open_beneath(int root, const std::string& path, int flags) {
  static std::atomic<bool> kernel_lacks_it = false;
  if (!kernel_lacks_it.load(std::memory_order_relaxed)) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags | O_NOFOLLOW | O_CLOEXEC);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    long descriptor = -1;
    do {
      descriptor =
          ::syscall(SYS_openat2, root, path.empty() ? "." : path.c_str(), &how, sizeof(how));
    } while (descriptor < 0 && (errno == EINTR || errno == EAGAIN));
    if (descriptor >= 0) return static_cast<int>(descriptor);
    // Sandboxes answer EPERM to calls that they do not know; the steps tell which it is.
    if (errno != ENOSYS && errno != EPERM) return -errno;
    if (errno == ENOSYS) kernel_lacks_it.store(true, std::memory_order_relaxed);
  }
  return open_beneath_by_steps(root, path, flags);
}

Result<Tree> Tree::open(const std::string& path, bool create) {
  // Absolute, so that messages stay true when somebody changes the working directory.
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).lexically_normal();
  if (error) return failure(file_error(error.value(), "find", path));
  if (create) MR_RETURN_IF_ERROR(PosixDisk().make_directories(absolute));
  // The root itself may be a symbolic link: the user named it.
  MR_ASSIGN_OR_RETURN(File root, File::open(absolute, O_RDONLY | O_DIRECTORY));
  return Tree(std::move(root));
}

std::string Tree::full_path(std::string_view path) const { return join_path(root_path(), path); }

Result<File> Tree::open_file(const std::string& path) const {
  // O_NONBLOCK, so that a FIFO that somebody left there does not wait for its writer.
  const int descriptor = open_beneath(root(), path, O_RDONLY | O_NONBLOCK);
  if (descriptor < 0 && means_absent(-descriptor)) return failure(absent(full_path(path)));
  if (descriptor < 0) return failure(file_error(-descriptor, "open", full_path(path)));
  File file = File::adopt(descriptor, full_path(path));
  MR_ASSIGN_OR_RETURN(const struct stat facts, file.stat());
  if (!S_ISREG(facts.st_mode)) return failure(absent(file.path()));
  return file;
}

Result<File> Tree::open_directory(const std::string& path) const {
  const int descriptor = open_beneath(root(), path, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0 && means_absent(-descriptor)) return failure(absent(full_path(path)));
  if (descriptor < 0) return failure(file_error(-descriptor, "open", full_path(path)));
  return File::adopt(descriptor, full_path(path));
}

Result<File> Tree::make_directories(const std::string& path, const ObjectKey& key) const {
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const int found = open_beneath(root(), path, O_RDONLY | O_DIRECTORY);
    if (found >= 0) return File::adopt(found, full_path(path));
    if (found == -ENOTDIR || found == -ELOOP) {
      return failure(
          StatusCode::kInvalidArgument,
          fmt::format("'{}' cannot be stored: in a file:// store a key cannot continue another "
                      "object's key after a '/', and '{}' or a part of it is no directory",
                      key.value(), full_path(path)));
    }
    if (found != -ENOENT) return failure(file_error(-found, "open", full_path(path)));
    const std::string parent(parent_of(path));
    // Recursion ends at the root, which exists; it is as deep as a key of 1 KiB has slashes.
    MR_ASSIGN_OR_RETURN(const File above, make_directories(parent, key));
    const std::string name(base_name(path));
    if (::mkdirat(above.descriptor(), name.c_str(), 0777) != 0 && errno != EEXIST &&
        errno != ENOENT) {
      return failure(file_error(errno, "make directory", full_path(path)));
    }
  }
  return failure(StatusCode::kConflict,
                 fmt::format("others keep removing the directory '{}'", full_path(path)));
}

Status Tree::sync_upwards(std::string path) const {
  for (;;) {
    Result<File> directory = open_directory(path);
    if (directory) {
      MR_RETURN_IF_ERROR(directory->sync());
    } else if (directory.error().code() != StatusCode::kNotFound) {
      return directory.error();
    }
    if (path.empty()) return {};
    path = parent_of(path);
  }
}

Status Tree::remove_empty_directories(std::string path) const {
  while (!path.empty()) {
    const std::string parent(parent_of(path));
    Result<File> above = open_directory(parent);
    if (!above && above.error().code() != StatusCode::kNotFound) return above.error();
    if (above) {
      const std::string name(base_name(path));
      const int result = ::unlinkat(above->descriptor(), name.c_str(), AT_REMOVEDIR);
      // Not empty, or not ours to remove: it stays.
      if (result != 0 && errno != ENOENT) break;
    }
    path = parent;
  }
  Result<File> surviving = open_directory(path);
  if (surviving) return surviving->sync();
  return surviving.error().code() == StatusCode::kNotFound ? Status() : surviving.error();
}

}  // namespace millrace::file_object_store
