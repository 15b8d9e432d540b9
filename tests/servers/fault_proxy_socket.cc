#include "tests/servers/fault_proxy_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace millrace::testing {

using std::chrono::steady_clock;

BufferedSocket::~BufferedSocket() {
  close();
  for (const int end : pipe_) {
    if (end >= 0) ::close(end);
  }
}

void BufferedSocket::adopt(int fd) {
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<char[]>(kBufferBytes);
  begin_ = end_ = 0;
  const int on = 1;
  // Errors of this call cost speed only.
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const std::lock_guard lock(mutex_);
  fd_ = fd;
  if (aborted_) (void)::shutdown(fd, SHUT_RDWR);
}

bool BufferedSocket::connect(const std::string& host, std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1 ||
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd);
    return false;
  }
  adopt(fd);
  return true;
}

bool BufferedSocket::fill() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (end_ == kBufferBytes && begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == kBufferBytes || fd_ < 0) return false;
  ssize_t count = 0;
  do {
    count = ::recv(fd_, buffer_.get() + end_, kBufferBytes - end_, 0);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return false;
  end_ += static_cast<std::size_t>(count);
  return true;
}

bool BufferedSocket::send(std::string_view bytes, bool more) {
  if (fd_ < 0) return false;
  while (!bytes.empty()) {
    const ssize_t count =
        ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool BufferedSocket::open_pipe() {
  if (pipe_[0] >= 0) return true;
  if (::pipe2(pipe_.data(), O_CLOEXEC) != 0) return false;
  // A larger pipe means fewer calls. Refused beyond the user's limit, which costs speed only.
  (void)::fcntl(pipe_[1], F_SETPIPE_SZ, static_cast<int>(kBufferBytes) * 2);
  return true;
}

std::size_t BufferedSocket::splice_to(BufferedSocket& to, std::uint64_t count) {
  if (fd_ < 0 || to.fd_ < 0 || !open_pipe()) return 0;
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(count, kBufferBytes * 2));
  ssize_t taken = 0;
  do {
    taken = ::splice(fd_, nullptr, pipe_[1], nullptr, wanted, SPLICE_F_MOVE);
  } while (taken < 0 && errno == EINTR);
  if (taken <= 0) return 0;
  for (ssize_t left = taken; left > 0;) {
    const ssize_t given =
        ::splice(pipe_[0], nullptr, to.fd_, nullptr, static_cast<std::size_t>(left), SPLICE_F_MOVE);
    if (given < 0 && errno == EINTR) continue;
    if (given <= 0) {
      to.close();  // Bytes are lost in the pipe, so nothing may follow them.
      return 0;
    }
    left -= given;
  }
  return static_cast<std::size_t>(taken);
}

bool BufferedSocket::stale() const {
  char byte = 0;
  const ssize_t count = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return begin_ != end_ || count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

void BufferedSocket::flush(std::chrono::milliseconds timeout) const {
  const auto deadline = steady_clock::now() + timeout;
  int queued = 0;
  while (ioctl(fd_, SIOCOUTQ, &queued) == 0 && queued > 0 && steady_clock::now() < deadline) {
    pollfd gone{.fd = fd_, .events = POLLRDHUP, .revents = 0};
    if (::poll(&gone, 1, 1) != 0) return;
  }
}

void BufferedSocket::close() {
  const std::lock_guard lock(mutex_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  begin_ = end_ = 0;
}

void BufferedSocket::reset() {
  if (fd_ < 0) return;
  const linger now{.l_onoff = 1, .l_linger = 0};
  (void)setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

void BufferedSocket::close_gracefully() {
  if (fd_ < 0) return;
  (void)::shutdown(fd_, SHUT_WR);
  const auto deadline = steady_clock::now() + std::chrono::seconds(2);
  std::array<char, 4096> sink;
  while (steady_clock::now() < deadline) {
    pollfd input{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, 100) == 0) continue;
    if (::recv(fd_, sink.data(), sink.size(), MSG_DONTWAIT) <= 0) break;
  }
  close();
}

void BufferedSocket::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  if (fd_ >= 0) (void)::shutdown(fd_, SHUT_RDWR);
}

void BufferedSocket::abort_with_reset() {
  const std::lock_guard lock(mutex_);
  if (fd_ < 0) return;
  // Not SHUT_RDWR: that sends a FIN, and the client would see a clean end.
  const linger now{.l_onoff = 1, .l_linger = 0};
  (void)setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  (void)::shutdown(fd_, SHUT_RD);
}

bool sleep_unless_closed(int fd, int stop_fd, steady_clock::time_point until) {
  for (;;) {
    const auto left = until - steady_clock::now();
    if (left <= steady_clock::duration::zero()) return true;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{.tv_sec = std::min<time_t>(seconds.count(), 3600),
                           .tv_nsec = std::chrono::nanoseconds(left - seconds).count()};
    std::array<pollfd, 2> events{{{.fd = fd, .events = POLLRDHUP, .revents = 0},
                                  {.fd = stop_fd, .events = POLLIN, .revents = 0}}};
    const int ready = ::ppoll(events.data(), events.size(), &timeout, nullptr);
    if (ready > 0) return false;
  }
}

std::size_t Pacer::piece(std::size_t wanted, std::uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return wanted;
  // Fifty pieces a second look like a steady flow; below 50 bytes a second it is byte by byte.
  const auto share = static_cast<std::size_t>(std::max<std::uint64_t>(bytes_per_second / 50, 1));
  return std::min(wanted, share);
}

bool Pacer::wait(std::size_t sent, std::uint64_t bytes_per_second, int fd, int stop_fd) {
  if (bytes_per_second == 0) return true;
  const auto cost =
      std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(
          static_cast<double>(sent) / static_cast<double>(bytes_per_second)));
  free_at_ = std::max(free_at_, steady_clock::now() - std::chrono::milliseconds(20)) + cost;
  return sleep_unless_closed(fd, stop_fd, free_at_);
}

}  // namespace millrace::testing
