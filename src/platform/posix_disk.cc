#include "platform/posix_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string_view>

#include <fmt/format.h>

#include "platform/file.h"
#include "platform/file_error.h"
#include "platform/path.h"

namespace millrace {
namespace {

class PosixDiskFile final : public DiskFile {
 public:
  explicit PosixDiskFile(File file) : file_(std::move(file)) {}

  Result<std::size_t> read_at(std::uint64_t offset, MutableByteView into) override {
    MR_ASSIGN_OR_RETURN(const std::size_t size, file_.read_at(offset, into));
    MR_RETURN_IF_ERROR(check_written());
    return size;
  }
  Status write_at(std::uint64_t offset, ByteView from) override {
    has_written_.store(true, std::memory_order_relaxed);
    return file_.write_at(offset, from);
  }
  Status write_past_cache(std::uint64_t offset, ByteView from) override;
  Result<bool> read_now(std::uint64_t offset, MutableByteView into) override {
    MR_ASSIGN_OR_RETURN(const bool there, file_.read_now(offset, into));
    MR_RETURN_IF_ERROR(check_written());
    return there;
  }
  Status punch(std::uint64_t offset, std::uint64_t length) override {
    return file_.punch(offset, length);
  }
  Status sync() override { return file_.data_sync(); }
  Status truncate(std::uint64_t size) override { return file_.truncate(size); }
  Result<std::uint64_t> size() override { return file_.size(); }
  std::optional<int> descriptor() const override { return file_.descriptor(); }
  const std::string& path() const override { return file_.path(); }

 private:
  Status check_written();

  const File file_;
  std::atomic<bool> has_written_ = false;  // Through the page cache.
  std::atomic<bool> has_lost_ = false;
  // A second descriptor with O_DIRECT, opened at the first need; not open where the file system has
  // no such thing.
  std::once_flag direct_once_;
  File direct_;
};

// What is in the page cache may fail to reach the device, long after the write. Then its pages are
// forgotten like others, and are read from the device as it was before. The kernel tells that once,
// at no cost where it is asked about bytes that there are none of, and it is asked after each read:
// one that got such a page is later than the failure.
Status PosixDiskFile::check_written() {
  constexpr off64_t kBehindAll = off64_t{1} << 62;
  if (!has_written_.load(std::memory_order_relaxed)) return {};
  if (::sync_file_range(file_.descriptor(), kBehindAll, 1, SYNC_FILE_RANGE_WAIT_BEFORE) != 0 &&
      (errno == EIO || errno == ENOSPC)) {
    has_lost_.store(true);
  }
  if (!has_lost_.load()) return {};
  return {StatusCode::kIoError,
          fmt::format("'{}' has lost what was written to it: its device has failed", path())};
}

Status PosixDiskFile::write_past_cache(std::uint64_t offset, ByteView from) {
  // What every device and file system takes.
  constexpr std::uint64_t kAlignment = 4096;
  const auto address = reinterpret_cast<std::uintptr_t>(from.data());
  std::size_t length = from.size() - from.size() % kAlignment;
  if (offset % kAlignment != 0 || address % kAlignment != 0) length = 0;
  if (length > 0) {
    std::call_once(direct_once_, [this] {
      // The name may be another file's by now; the descriptor is not.
      auto direct =
          File::open(fmt::format("/proc/self/fd/{}", file_.descriptor()), O_WRONLY | O_DIRECT);
      if (direct) direct_ = *std::move(direct);
    });
    Status status = direct_.is_open() ? direct_.write_at(offset, from.first(length))
                                      : Status(StatusCode::kUnsupported, "no O_DIRECT here");
    // Some devices want more than whole pages.
    if (status == StatusCode::kInvalidArgument || status == StatusCode::kUnsupported) {
      length = 0;
    } else if (!status.ok()) {
      return status;
    }
  }
  if (length == from.size()) return {};
  return write_at(offset + length, from.subspan(length));
}

// An open file under flock(2), which the kernel drops with the last descriptor.
class PosixDiskLock final : public DiskLock {
 public:
  explicit PosixDiskLock(File file) : file_(std::move(file)) {}
  ~PosixDiskLock() override {
    // A next holder that has not written its own line yet must not be taken for us.
    (void)file_.truncate(0);
    // Closing alone would not do while a child between fork and exec has a copy of the descriptor.
    (void)::flock(file_.descriptor(), LOCK_UN);
  }
  PosixDiskLock(const PosixDiskLock&) = delete;
  PosixDiskLock& operator=(const PosixDiskLock&) = delete;

 private:
  const File file_;
};

int open_flags(OpenMode mode) {
  switch (mode) {
    case OpenMode::kRead:
      return O_RDONLY;
    case OpenMode::kReadWrite:
      return O_RDWR;
    case OpenMode::kCreate:
      return O_RDWR | O_CREAT;
    case OpenMode::kCreateNew:
      return O_RDWR | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::kFile;
  return S_ISDIR(mode) ? FileKind::kDirectory : FileKind::kOther;
}

// The kind of an entry, from readdir where the file system tells, else by asking for it.
FileKind kind_of(DIR* directory, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return kind_of(DTTOIF(entry.d_type));
  struct stat facts{};
  if (::fstatat(::dirfd(directory), entry.d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) {
    return FileKind::kOther;
  }
  return kind_of(facts.st_mode);
}

// RENAME_NOREPLACE is not known to every file system (NFS): a hard link also refuses an existing
// name, but works for files only.
Status rename_without_replacing(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno != EINVAL && errno != ENOSYS) return file_error(errno, "rename to", to);
  if (::link(from.c_str(), to.c_str()) != 0) return file_error(errno, "rename to", to);
  return ::unlink(from.c_str()) == 0 ? Status() : file_error(errno, "remove", from);
}

}  // namespace

Result<std::unique_ptr<DiskFile>> PosixDisk::open(const std::string& path, OpenMode mode) {
  MR_ASSIGN_OR_RETURN(File file, File::open(path, open_flags(mode)));
  MR_ASSIGN_OR_RETURN(const struct stat facts, file.stat());
  // Opening a directory for reading succeeds and fails only at the first read: say it here.
  if (S_ISDIR(facts.st_mode)) return failure(file_error(EISDIR, "open", path));
  return std::make_unique<PosixDiskFile>(std::move(file));
}

Status PosixDisk::rename(const std::string& from, const std::string& to, Replace replace) {
  if (replace == Replace::kRefused) return rename_without_replacing(from, to);
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  // ENOENT may be about either: name the one that is missing.
  const int error = errno;
  const bool source_missing = error == ENOENT && ::access(from.c_str(), F_OK) != 0;
  return file_error(error, source_missing ? "rename" : "rename to", source_missing ? from : to);
}

Status PosixDisk::remove(const std::string& path) {
  return ::remove(path.c_str()) == 0 ? Status() : file_error(errno, "remove", path);
}

Result<std::vector<DirectoryEntry>> PosixDisk::list(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (directory == nullptr) return failure(file_error(errno, "list", path));
  std::vector<DirectoryEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr && errno != 0) return failure(file_error(errno, "list", path));
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") {
      entries.push_back({std::string(name), kind_of(directory.get(), *entry)});
    }
  }
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  return entries;
}

Status PosixDisk::make_directories(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) {
    if (errno == EEXIST) {
      MR_ASSIGN_OR_RETURN(const File directory, File::open(path, O_PATH | O_DIRECTORY));
      // Whoever made it may not have synced its name yet, so an existing one is synced as well. A
      // parent that we may not open was not made by the likes of us.
      Status status = sync_directory(std::string(parent_path(path)));
      return status == StatusCode::kPermissionDenied ? Status() : status;
    }
    if (errno != ENOENT || parent_path(path) == path) {
      return file_error(errno, "make directory", path);
    }
    MR_RETURN_IF_ERROR(make_directories(std::string(parent_path(path))));
    if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
      return file_error(errno, "make directory", path);
    }
  }
  return sync_directory(std::string(parent_path(path)));
}

Status PosixDisk::make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return {};
  if (errno != EEXIST) return file_error(errno, "make directory", path);
  MR_ASSIGN_OR_RETURN(const File directory, File::open(path, O_PATH | O_DIRECTORY));
  return {};
}

Status PosixDisk::sync_directory(const std::string& path) { return millrace::sync_directory(path); }

Result<FileFacts> PosixDisk::stat(const std::string& path) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0) return failure(file_error(errno, "stat", path));
  constexpr std::uint64_t kStatBlockBytes =
      512;  // The unit of st_blocks, whatever the file system.
  return FileFacts{
      .kind = kind_of(facts.st_mode),
      .size = static_cast<std::uint64_t>(facts.st_size),
      .allocated_bytes = static_cast<std::uint64_t>(facts.st_blocks) * kStatBlockBytes,
      .modified = WallTime(std::chrono::seconds(facts.st_mtim.tv_sec) +
                           std::chrono::nanoseconds(facts.st_mtim.tv_nsec)),
  };
}

Result<DiskSpace> PosixDisk::space(const std::string& path) {
  struct statvfs facts{};
  if (::statvfs(path.c_str(), &facts) != 0) {
    return failure(file_error(errno, "ask for the free space of", path));
  }
  return DiskSpace{.total_bytes = facts.f_blocks * facts.f_frsize,
                   .free_bytes = facts.f_bavail * facts.f_frsize};
}

Result<std::unique_ptr<DiskLock>> PosixDisk::lock(const std::string& path, std::string_view owner) {
  MR_ASSIGN_OR_RETURN(File file, File::open(path, O_RDWR | O_CREAT | O_NOFOLLOW));
  int result = 0;
  do {
    result = ::flock(file.descriptor(), LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno == EWOULDBLOCK) {
    std::array<std::byte, kLockTextBytesMax> text;
    MR_ASSIGN_OR_RETURN(const std::size_t length, file.read_at(0, text));
    return failure(lock_conflict(path, as_text(ByteView(text).first(length))));
  }
  if (result != 0 && (errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS)) {
    return failure(StatusCode::kUnsupported,
                   fmt::format("the file system of '{}' has no file locks", path));
  }
  if (result != 0) return failure(file_error(errno, "lock", path));
  // Emptied first, so that nobody reads a mix of two lines. Neither step can undo the lock.
  (void)file.truncate(0);
  (void)file.write_at(0, as_bytes(fmt::format("{}\n", owner)));
  return std::make_unique<PosixDiskLock>(std::move(file));
}

}  // namespace millrace
