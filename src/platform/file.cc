#include "platform/file.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "platform/file_error.h"
#include "platform/path.h"

namespace millrace {
namespace {

// The offset as the kernel takes it, or a failure for one that no file can have.
Result<off_t> checked_offset(std::uint64_t offset, std::size_t length, const std::string& path) {
  constexpr auto kOffsetMax = static_cast<std::uint64_t>(INT64_MAX);
  if (offset > kOffsetMax || length > kOffsetMax - offset) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("offset {} is beyond what a file can hold ('{}')", offset, path));
  }
  return static_cast<off_t>(offset);
}

}  // namespace

Result<File> File::open(std::string path, int flags, mode_t mode, int directory) {
  int descriptor = -1;
  do {
    descriptor = ::openat(directory, path.c_str(), flags | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return failure(file_error(errno, "open", path));
  return File(descriptor, std::move(path));
}

File File::adopt(int descriptor, std::string path) { return File(descriptor, std::move(path)); }

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
    path_ = std::move(other.path_);
  }
  return *this;
}

File::~File() { close(); }

void File::close() {
  // No retry on EINTR: on Linux the descriptor is gone either way, and may already be another's.
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

Result<std::size_t> File::read_at(std::uint64_t offset, MutableByteView into) const {
  MR_ASSIGN_OR_RETURN(const off_t start, checked_offset(offset, into.size(), path_));
  std::size_t done = 0;
  while (done < into.size()) {
    const std::size_t wanted = std::min(into.size() - done, kTransferBytesMax);
    const ssize_t count =
        ::pread(descriptor_, into.data() + done, wanted, start + static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure(file_error(errno, "read", path_));
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

Result<bool> File::read_now(std::uint64_t offset, MutableByteView into) const {
  if (offset > static_cast<std::uint64_t>(INT64_MAX)) return false;
  const iovec target{.iov_base = into.data(), .iov_len = into.size()};
  // The library's call is a point where a thread can be cancelled, which costs as much as a tenth
  // of a small read.
  const ssize_t count = ::syscall(SYS_preadv2, descriptor_, &target, 1, offset, 0, RWF_NOWAIT);
  if (count >= 0) return static_cast<std::size_t>(count) == into.size();
  // EINTR also means that it would have waited; ENOSYS is a sandbox that lacks the call.
  if (errno == EAGAIN || errno == EOPNOTSUPP || errno == EINTR || errno == ENOSYS) return false;
  return failure(file_error(errno, "read", path_));
}

bool is_in_memory(int descriptor, ByteRange range) {
  // What is evicted goes in large pieces: a look in each of these finds it.
  constexpr std::uint64_t kStep = 512 * kKiB;
  if (range.empty() || range.end() > static_cast<std::uint64_t>(INT64_MAX)) return false;
  const auto has = [descriptor](std::uint64_t offset) {
    std::byte byte;
    const iovec target{.iov_base = &byte, .iov_len = 1};
    return ::syscall(SYS_preadv2, descriptor, &target, 1, offset, 0, RWF_NOWAIT) == 1;
  };
  for (std::uint64_t at = range.offset; at < range.end(); at += kStep) {
    if (!has(at)) return false;
  }
  return has(range.end() - 1);
}

Status File::write_at(std::uint64_t offset, ByteView from) const {
  MR_ASSIGN_OR_RETURN(const off_t start, checked_offset(offset, from.size(), path_));
  std::size_t done = 0;
  while (done < from.size()) {
    const std::size_t wanted = std::min(from.size() - done, kTransferBytesMax);
    const ssize_t count =
        ::pwrite(descriptor_, from.data() + done, wanted, start + static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(errno, "write", path_);
    // POSIX leaves a count of zero open; going on would spin.
    if (count == 0) return file_error(EIO, "write", path_);
    done += static_cast<std::size_t>(count);
  }
  return {};
}

Result<struct stat> File::stat() const {
  struct stat facts{};
  if (::fstat(descriptor_, &facts) != 0) return failure(file_error(errno, "stat", path_));
  return facts;
}

Result<std::uint64_t> File::size() const {
  MR_ASSIGN_OR_RETURN(const struct stat facts, stat());
  return static_cast<std::uint64_t>(facts.st_size);
}

Status File::truncate(std::uint64_t size) const {
  MR_ASSIGN_OR_RETURN(const off_t length, checked_offset(size, 0, path_));
  int result = 0;
  do {
    result = ::ftruncate(descriptor_, length);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? Status() : file_error(errno, "truncate", path_);
}

Status File::punch(std::uint64_t offset, std::uint64_t length) const {
  if (length == 0) return {};  // Which the kernel refuses.
  MR_ASSIGN_OR_RETURN(const off_t start, checked_offset(offset, length, path_));
  constexpr int kMode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  int result = 0;
  do {
    result = ::fallocate(descriptor_, kMode, start, static_cast<off_t>(length));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return {};
  if (errno == EOPNOTSUPP || errno == ENOSYS) {
    return {StatusCode::kUnsupported,
            fmt::format("the file system of '{}' cannot free a part of a file", path_)};
  }
  return file_error(errno, "free space of", path_);
}

Status File::sync() const {
  return ::fsync(descriptor_) == 0 ? Status() : file_error(errno, "sync", path_);
}

Status File::data_sync() const {
  return ::fdatasync(descriptor_) == 0 ? Status() : file_error(errno, "sync", path_);
}

Status sync_directory(const std::string& path) {
  MR_ASSIGN_OR_RETURN(const File directory, File::open(path, O_RDONLY | O_DIRECTORY));
  return directory.sync();
}

Status write_file_atomically(const std::string& path, ByteView bytes, mode_t mode) {
  const std::string directory(parent_path(path));
  const std::string temporary =
      join_path(directory, fmt::format(".{}.{}", base_name(path), system_random().token()));
  const auto write = [&]() -> Status {
    MR_ASSIGN_OR_RETURN(const File file, File::open(temporary, O_WRONLY | O_CREAT | O_EXCL, mode));
    MR_RETURN_IF_ERROR(file.write_at(0, bytes));
    MR_RETURN_IF_ERROR(file.sync());
    if (::rename(temporary.c_str(), path.c_str()) != 0) return file_error(errno, "replace", path);
    return {};
  };
  if (Status status = write(); !status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return sync_directory(directory);
}

Result<std::string> read_file(const std::string& path, std::uint64_t bytes_max) {
  MR_ASSIGN_OR_RETURN(const File file, File::open(path, O_RDONLY));
  // One byte more than allowed tells "too large" from "just fits"; files of /proc claim size zero,
  // so the size is not asked.
  std::string text;
  constexpr std::size_t kStep = 64 * kKiB;
  while (text.size() <= bytes_max) {
    const std::size_t before = text.size();
    text.resize(before + std::min<std::uint64_t>(kStep, bytes_max + 1 - before));
    const MutableByteView into = std::as_writable_bytes(std::span(text)).subspan(before);
    MR_ASSIGN_OR_RETURN(const std::size_t count, file.read_at(before, into));
    text.resize(before + count);
    if (count < into.size()) return text;
  }
  return failure(StatusCode::kResourceExhausted,
                 fmt::format("'{}' is larger than the {} bytes allowed", path, bytes_max));
}

}  // namespace millrace
