#include "dataset/source_directory_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/buffer.h"
#include "base/file_name.h"
#include "base/little_endian.h"
#include "objectstore/file_object_store_tree.h"
#include "platform/file.h"
#include "platform/file_error.h"
#include "platform/path.h"

namespace millrace {
namespace {

constexpr std::size_t kNamesBufferBytes = 64 * kKiB;
// Each level that a thread walks into by itself holds a descriptor and a buffer.
constexpr std::size_t kOwnLevelsMax = 32;

std::int64_t nanoseconds_of(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

std::string_view kind_name(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFSOCK:
      return "it is a socket";
    case S_IFIFO:
      return "it is a FIFO";
    case S_IFCHR:
      return "it is a character device";
    case S_IFBLK:
      return "it is a block device";
    default:
      return "it is of an unknown kind";
  }
}

}  // namespace

SourceEntry source_entry_of(const struct stat& facts) {
  SourceEntry entry;
  entry.mode = static_cast<std::uint16_t>(facts.st_mode & 07777);
  entry.mtime_ns = nanoseconds_of(facts.st_mtim);
  if (S_ISDIR(facts.st_mode)) {
    entry.kind = EntryKind::kDirectory;
  } else if (S_ISLNK(facts.st_mode)) {
    entry.kind = EntryKind::kSymlink;
  } else {
    entry.kind = EntryKind::kFile;
    entry.size = static_cast<std::uint64_t>(facts.st_size);
    // The inode tells a file that was renamed over this one; the ctime, which nobody can set, one
    // whose mtime was put back.
    std::array<std::byte, 16> token{};
    store_little_endian(token.data(), static_cast<std::uint64_t>(facts.st_ino));
    store_little_endian(token.data() + 8,
                        static_cast<std::uint64_t>(nanoseconds_of(facts.st_ctim)));
    entry.token = as_text(token);
  }
  return entry;
}

SourceDirectoryWalk::SourceDirectoryWalk(const RequestContext& context, const Clock& clock,
                                         int root, SourceWork<std::string>& work, SourceSink& sink)
    : context_(context), clock_(clock), root_(root), work_(work), batch_(sink) {}

Status SourceDirectoryWalk::walk(const std::string& path) {
  MR_RETURN_IF_ERROR(enter(path, 0));
  return batch_.flush();
}

Status SourceDirectoryWalk::problem(const std::string& path, int error, std::string_view what) {
  return batch_.report(path, fmt::format("{}: {}", what, std::generic_category().message(error)));
}

Status SourceDirectoryWalk::enter(const std::string& path, std::size_t depth) {
  const int descriptor =
      file_object_store::open_beneath(root_, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  if (descriptor < 0) {
    if (path.empty()) return file_error(-descriptor, "read", "the root of the source");
    return problem(path, -descriptor, "it is a directory that cannot be read");
  }
  const File directory = File::adopt(descriptor, path);
  MR_ASSIGN_OR_RETURN(const struct stat facts, directory.stat());
  SourceEntry entry = source_entry_of(facts);
  entry.path = path;
  MR_RETURN_IF_ERROR(batch_.add(std::move(entry)));
  return read_names(directory.descriptor(), path, depth);
}

Status SourceDirectoryWalk::read_names(int directory, const std::string& path, std::size_t depth) {
  Buffer names = Buffer::allocate(kNamesBufferBytes);
  for (;;) {
    MR_RETURN_IF_ERROR(context_.check(clock_));
    const ssize_t filled = ::getdents64(directory, names.data(), names.size());
    if (filled == 0) return {};
    if (filled < 0) {
      // ENOENT: the directory was removed while it was read.
      if (path.empty()) return file_error(errno, "read", "the root of the source");
      return problem(path, errno, "it is a directory that cannot be read");
    }
    for (std::size_t at = 0; at < static_cast<std::size_t>(filled);) {
      const auto* record = reinterpret_cast<const dirent64*>(names.data() + at);
      at += record->d_reclen;
      const std::string_view name = record->d_name;
      if (name == "." || name == "..") continue;
      MR_RETURN_IF_ERROR(add_name(directory, path, name, depth));
    }
  }
}

Status SourceDirectoryWalk::add_name(int directory, const std::string& path, std::string_view name,
                                     std::size_t depth) {
  std::string entry_path = join_path(path, name);
  if (entry_path.size() > kEntryPathBytesMax || name.size() > kFileNameBytesMax) {
    std::string reason = entry_path_fault(entry_path).value_or("its name is too long");
    return batch_.report(std::move(entry_path), std::move(reason));
  }
  struct stat facts{};
  // The names of a directory record end in NUL, and so does this view of one.
  if (::fstatat(directory, name.data(), &facts, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) {
    return problem(entry_path, errno,
                   errno == ENOENT ? "it vanished during the scan" : "it cannot be looked at");
  }
  if (S_ISDIR(facts.st_mode)) {
    if (work_.try_add(entry_path)) return {};
    if (depth < kOwnLevelsMax) return enter(entry_path, depth + 1);
    work_.add(std::move(entry_path));
    return {};
  }
  SourceEntry entry = source_entry_of(facts);
  entry.path = std::move(entry_path);
  if (S_ISREG(facts.st_mode)) return batch_.add(std::move(entry));
  if (S_ISLNK(facts.st_mode)) return add_link(directory, facts, std::move(entry), name);
  return batch_.report(std::move(entry.path), std::string(kind_name(facts.st_mode)));
}

Status SourceDirectoryWalk::add_link(int directory, const struct stat& facts, SourceEntry entry,
                                     std::string_view name) {
  // One more than the longest that is allowed, so that a longer one is seen.
  entry.symlink_target.resize(kEntryPathBytesMax + 1);
  const ssize_t length = ::readlinkat(directory, name.data(), entry.symlink_target.data(),
                                      entry.symlink_target.size());
  if (length < 0) {
    return problem(entry.path, errno,
                   errno == ENOENT || errno == EINVAL ? "it changed during the scan"
                                                      : "it is a link that cannot be read");
  }
  if (length == 0 || static_cast<std::size_t>(length) > kEntryPathBytesMax) {
    return batch_.report(
        std::move(entry.path),
        fmt::format("it is a link whose target has {} bytes", length == 0 ? 0 : facts.st_size));
  }
  entry.symlink_target.resize(static_cast<std::size_t>(length));
  entry.symlink_target.shrink_to_fit();
  return batch_.add(std::move(entry));
}

}  // namespace millrace
