#include "cli/local_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "platform/file_error.h"

namespace millrace::cli {
namespace {

constexpr std::size_t kPieceBytes = 8 * kMiB;

Status taken(const std::string& path) {
  return {StatusCode::kPreconditionFailed, fmt::format("'{}' exists already", path)};
}

}  // namespace

Result<std::size_t> read_some(int fd, MutableByteView into, int interrupt_fd,
                              const std::string& name) {
  while (true) {
    pollfd fds[] = {{fd, POLLIN, 0}, {interrupt_fd, POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return failure(file_error(errno, "wait for", name));
    }
    if ((fds[1].revents & POLLIN) != 0) return failure(StatusCode::kCancelled, "interrupted");
    const ssize_t length = ::read(fd, into.data(), into.size());
    if (length >= 0) return static_cast<std::size_t>(length);
    if (errno != EINTR && errno != EAGAIN) return failure(file_error(errno, "read", name));
  }
}

Result<LocalFileReader> LocalFileReader::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failure(file_error(errno, "read", path));
  LocalFileReader reader(fd, path);
  struct stat info{};
  if (::fstat(fd, &info) != 0) return failure(file_error(errno, "read", path));
  if (S_ISDIR(info.st_mode)) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("'{}' is a directory: add -r to copy everything in it", path));
  }
  reader.regular_ = S_ISREG(info.st_mode);
  if (reader.regular_) reader.size_ = static_cast<std::uint64_t>(info.st_size);
  return reader;
}

LocalFileReader LocalFileReader::standard_input() {
  return {::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), "standard input"};
}

LocalFileReader::LocalFileReader(LocalFileReader&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      name_(std::move(other.name_)),
      size_(other.size_),
      regular_(other.regular_) {}

LocalFileReader::~LocalFileReader() {
  if (fd_ >= 0) ::close(fd_);
}

Status LocalFileReader::read_all(int interrupt_fd, const ByteSink& sink) {
  std::uint64_t total = 0;
  bool at_end = false;
  while (!at_end) {
    // A small file gets a small buffer, and one byte more to see its end in the same round.
    const std::uint64_t wanted = regular_ && size_ >= total ? size_ - total + 1 : kPieceBytes;
    Buffer buffer = Buffer::allocate(std::min<std::uint64_t>(wanted, kPieceBytes));
    std::size_t filled = 0;
    while (filled < buffer.size() && !at_end) {
      MR_ASSIGN_OR_RETURN(const std::size_t length,
                          read_some(fd_, buffer.bytes().subspan(filled), interrupt_fd, name_));
      filled += length;
      at_end = length == 0;
    }
    total += filled;
    buffer.truncate(filled);
    if (filled > 0) MR_RETURN_IF_ERROR(sink(std::move(buffer).freeze()));
  }
  if (regular_ && total != size_) {
    return {StatusCode::kConflict,
            fmt::format("'{}' changed while it was read: {} bytes became {}; try again when nobody "
                        "writes to it",
                        name_, size_, total)};
  }
  return {};
}

Result<LocalFileWriter> LocalFileWriter::create(const std::string& path, Random& random) {
  struct stat info{};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    return failure(StatusCode::kInvalidArgument, fmt::format("'{}' is a directory", path));
  }
  if (exists && !S_ISREG(info.st_mode)) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return failure(file_error(errno, "write", path));
    return LocalFileWriter(fd, path, "");
  }
  const std::filesystem::path target(path);
  const std::filesystem::path directory = target.parent_path();
  std::error_code error;
  if (!directory.empty()) std::filesystem::create_directories(directory, error);
  if (error) return failure(file_error(error.value(), "make the directory", directory.string()));
  const std::string temporary = (directory / fmt::format(".{}.millrace", random.token())).string();
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return failure(file_error(errno, "write into", directory.string()));
  // Whoever gave the old file its permissions wants the new content to have them too.
  if (exists) ::fchmod(fd, info.st_mode & 07777);
  return LocalFileWriter(fd, path, temporary);
}

LocalFileWriter::LocalFileWriter(LocalFileWriter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})) {}

LocalFileWriter::~LocalFileWriter() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status LocalFileWriter::write(const Slice& data) {
  ByteView rest = data.bytes();
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written >= 0) {
      rest = rest.subspan(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return file_error(errno, "write", path_);
    }
  }
  return {};
}

Status LocalFileWriter::finish(bool keep_existing) {
  if (temporary_.empty()) return {};
  if (::fsync(fd_) != 0) return file_error(errno, "write", path_);
  const unsigned flags = keep_existing ? RENAME_NOREPLACE : 0;
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), flags) != 0) {
    if (errno == EEXIST) return taken(path_);
    return file_error(errno, "write", path_);
  }
  temporary_.clear();
  return {};
}

}  // namespace millrace::cli
