#include "platform/listening_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "platform/file_error.h"
#include "platform/path.h"
#include "platform/posix_disk.h"
#include "platform/process.h"

namespace millrace {
namespace {

constexpr int kBacklog = 512;

// Locks have no state but in the kernel, so one disk serves all sockets.
PosixDisk& socket_disk() {
  static PosixDisk disk;
  return disk;
}

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("'{}' cannot be a socket: the kernel takes paths of 1 to {} bytes",
                               path, sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* as_address(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

Status make_private_directories(const std::string& path) {
  if (path == "." || path == "/") return {};
  struct stat facts{};
  if (::stat(path.c_str(), &facts) == 0) return {};
  MR_RETURN_IF_ERROR(make_private_directories(std::string(parent_path(path))));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return file_error(errno, "make directory", path);
  }
  return {};
}

// Takes away a socket that nobody listens on. The lock is held, so nobody begins to just now.
Status remove_stale(const std::string& path, int type) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0) {
    return errno == ENOENT ? Status() : file_error(errno, "stat", path);
  }
  if (!S_ISSOCK(facts.st_mode)) {
    return {StatusCode::kInvalidArgument,
            fmt::format("'{}' is there and is no socket; name another path", path)};
  }
  if (connect_unix_socket(path, type)) {
    return {StatusCode::kConflict, fmt::format("another process listens at '{}'", path)};
  }
  return ::unlink(path.c_str()) == 0 || errno == ENOENT ? Status()
                                                        : file_error(errno, "remove", path);
}

}  // namespace

Result<ListeningSocket> ListeningSocket::unix_socket(const std::string& path, int type) {
  MR_RETURN_IF_ERROR(check_unix_path(path));
  MR_RETURN_IF_ERROR(make_private_directories(std::string(parent_path(path))));
  MR_ASSIGN_OR_RETURN(std::unique_ptr<DiskLock> lock,
                      socket_disk().lock(path + ".lock", describe_this_process("millrace")));
  MR_RETURN_IF_ERROR(remove_stale(path, type));
  MR_ASSIGN_OR_RETURN(File socket, bind_unix_socket(path, type));
  return ListeningSocket(std::move(socket), std::move(lock));
}

Status check_unix_path(const std::string& path) {
  const Result<sockaddr_un> address = unix_address(path);
  return address ? Status() : address.error();
}

Result<File> bind_unix_socket(const std::string& path, int type) {
  MR_ASSIGN_OR_RETURN(const sockaddr_un address, unix_address(path));
  File socket = File::adopt(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), path);
  if (!socket.is_open()) return failure(file_error(errno, "make a socket for", path));
  // Before bind, which gives the path this mode: so it is never open to others, not even shortly.
  if (::fchmod(socket.descriptor(), 0600) != 0 ||
      ::bind(socket.descriptor(), as_address(address), sizeof(address)) != 0 ||
      ::listen(socket.descriptor(), kBacklog) != 0) {
    return failure(file_error(errno, "listen at", path));
  }
  return socket;
}

ListeningSocket::~ListeningSocket() {
  if (socket_.is_open()) (void)::unlink(path().c_str());
}

Result<std::optional<AcceptedSocket>> ListeningSocket::accept() const {
  const int fd = ::accept4(descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    const bool none = errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
    if (none) return std::nullopt;
    return failure(file_error(errno, "accept a connection at", path()));
  }
  ucred peer{};
  socklen_t size = sizeof(peer);
  const bool known = ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  return AcceptedSocket{.socket = File::adopt(fd, path()),
                        .principal = known ? fmt::format("uid:{}", peer.uid) : "unknown"};
}

Result<File> connect_unix_socket(const std::string& path, int type) {
  MR_ASSIGN_OR_RETURN(const sockaddr_un address, unix_address(path));
  File socket = File::adopt(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0), path);
  if (!socket.is_open()) return failure(file_error(errno, "make a socket for", path));
  while (::connect(socket.descriptor(), as_address(address), sizeof(address)) != 0) {
    if (errno == EINTR) continue;
    if (errno == ENOENT || errno == ECONNREFUSED) {
      return failure(StatusCode::kNotFound, fmt::format("nobody listens at '{}'", path));
    }
    return failure(file_error(errno, "connect to", path));
  }
  return socket;
}

}  // namespace millrace
