#include "platform/tcp_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "platform/file_error.h"

namespace millrace {
namespace {

constexpr int kTcpBacklog = 1024;

struct TcpAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Result<TcpAddress> tcp_address(const std::string& text, std::uint16_t port) {
  TcpAddress address;
  sockaddr_in ipv4{};
  sockaddr_in6 ipv6{};
  if (::inet_pton(AF_INET, text.c_str(), &ipv4.sin_addr) == 1) {
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = htons(port);
    std::memcpy(&address.storage, &ipv4, sizeof ipv4);
    address.size = sizeof ipv4;
  } else if (::inet_pton(AF_INET6, text.c_str(), &ipv6.sin6_addr) == 1) {
    ipv6.sin6_family = AF_INET6;
    ipv6.sin6_port = htons(port);
    std::memcpy(&address.storage, &ipv6, sizeof ipv6);
    address.size = sizeof ipv6;
  } else {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("'{}' is no address of this machine: expected one such as "
                               "127.0.0.1, 0.0.0.0 or ::",
                               text));
  }
  return address;
}

std::uint16_t bound_port(int socket) {
  TcpAddress address{.size = sizeof(sockaddr_storage)};
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0)
    return 0;
  // The port is at the same place in both.
  sockaddr_in ipv4;
  std::memcpy(&ipv4, &address.storage, sizeof ipv4);
  return ntohs(ipv4.sin_port);
}

Status set_on(int socket, int level, int option, const std::string& name) {
  const int on = 1;
  if (::setsockopt(socket, level, option, &on, sizeof on) == 0) return {};
  return file_error(errno, "set up the socket of", name);
}

}  // namespace

Result<TcpListener> TcpListener::listen(const std::string& address, std::uint16_t port) {
  MR_ASSIGN_OR_RETURN(const TcpAddress bound, tcp_address(address, port));
  const std::string name = fmt::format("{} port {}", address, port);
  File socket = File::adopt(
      ::socket(bound.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), name);
  if (!socket.is_open()) return failure(file_error(errno, "make a socket for", name));
  // A daemon that was killed a moment ago has left connections behind, which nobody serves.
  MR_RETURN_IF_ERROR(set_on(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, name));
  const auto* const to = reinterpret_cast<const sockaddr*>(&bound.storage);
  if (::bind(socket.descriptor(), to, bound.size) != 0 ||
      ::listen(socket.descriptor(), kTcpBacklog) != 0) {
    if (errno == EADDRINUSE) {
      return failure(StatusCode::kConflict, fmt::format("another process listens at {}", name));
    }
    return failure(file_error(errno, "listen at", name));
  }
  const std::uint16_t actual = bound_port(socket.descriptor());
  return TcpListener(std::move(socket), actual);
}

Result<std::optional<AcceptedTcp>> TcpListener::accept() const {
  AcceptedTcp accepted;
  socklen_t size = sizeof accepted.peer;
  const int fd = ::accept4(descriptor(), reinterpret_cast<sockaddr*>(&accepted.peer), &size,
                           SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    const bool none = errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
    if (none) return std::nullopt;
    return failure(file_error(errno, "accept a connection at", socket_.path()));
  }
  accepted.socket = File::adopt(fd, socket_.path());
  MR_RETURN_IF_ERROR(set_on(fd, IPPROTO_TCP, TCP_NODELAY, socket_.path()));
  return accepted;
}

}  // namespace millrace
