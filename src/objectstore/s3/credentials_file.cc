#include "objectstore/s3/credentials_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/bytes.h"

namespace millrace::s3 {
namespace {

// Tokens are a few KiB at most; a header larger than this is refused by every server anyway.
constexpr std::uint64_t kTokenBytesMax = 64 * kKiB;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::unexpected<Status> file_failure(const std::string& path, int error) {
  StatusCode code = StatusCode::kIoError;
  if (error == ENOENT || error == ENOTDIR) code = StatusCode::kNotFound;
  if (error == EACCES || error == EPERM) code = StatusCode::kPermissionDenied;
  return failure(code, fmt::format("cannot read {}: {}", path, std::strerror(error)));
}

}  // namespace

Result<CredentialFile> read_credential_file(const std::string& path, std::uint64_t bytes_max) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer before we can refuse it.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return file_failure(path, errno);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return file_failure(path, errno);
  if (!S_ISREG(info.st_mode)) {
    return failure(StatusCode::kInvalidArgument, fmt::format("{} is not a regular file", path));
  }

  CredentialFile result;
  result.readable_by_others = (info.st_mode & (S_IRGRP | S_IROTH)) != 0;
  char chunk[4096];
  while (true) {
    const ssize_t count = ::read(file.get(), chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_failure(path, errno);
    if (count == 0) return result;
    result.text.append(chunk, static_cast<std::size_t>(count));
    if (result.text.size() > bytes_max) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("{} is longer than the {} bytes allowed", path, bytes_max));
    }
  }
}

Result<std::string> read_token_file(const std::string& path) {
  MR_ASSIGN_OR_RETURN(CredentialFile file, read_credential_file(path, kTokenBytesMax));
  const auto first = file.text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) {
    return failure(StatusCode::kInvalidArgument, fmt::format("token file {} is empty", path));
  }
  const auto last = file.text.find_last_not_of(" \t\r\n");
  std::string token = file.text.substr(first, last - first + 1);
  for (const unsigned char c : token) {
    if (c < 0x20 || c >= 0x7f) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("token file {} holds more than one line of text", path));
    }
  }
  return token;
}

}  // namespace millrace::s3
