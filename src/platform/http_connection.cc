#include "platform/http_connection.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "platform/file_error.h"

namespace millrace {
namespace {

// Heads and small bodies pass through here; the rest of a large body is received into its place.
constexpr std::size_t kScratchBytes = 16 * 1024;
// One turn of one connection, so that a fast one does not starve the others.
constexpr std::size_t kTurnBytesMax = 1024 * 1024;
// A body that is received for long is taken in pieces of this size: waking for every segment costs
// both sides more than the copying.
constexpr std::uint64_t kWakeBytesMax = 256 * 1024;

}  // namespace

Status HttpConnection::set_connected(int fd, bool tls) {
  socket_ = File::adopt(::fcntl(fd, F_DUPFD_CLOEXEC, 0), pool_key_);
  if (!socket_.is_open()) return file_error(errno, "keep a connection to", pool_key_);
  tls_ = tls;
  return {};
}

HttpConnection::Outcome HttpConnection::begin(HttpExchange& started) {
  exchange = &started;
  parser_.emplace(started, started.request().method == HttpMethod::kHead);
  sent_ = 0;
  send_broken_ = false;
  answered_ = false;
  reusable_ = false;
  failure_ = {};
  wake_at(1);
  send_pending();
  // An answer cannot be here yet; looking for it would cost a system call.
  return send_broken_ ? receive_available() : Outcome::kWaiting;
}

HttpConnection::Outcome HttpConnection::advance() {
  send_pending();
  return receive_available();
}

bool HttpConnection::wants_write() const {
  if (exchange == nullptr || send_broken_) return false;
  return sent_ < exchange->head().size() + exchange->request().body.size();
}

void HttpConnection::send_pending() {
  while (wants_write()) {
    const ByteView head = as_bytes(exchange->head());
    const ByteView body = exchange->request().body.bytes();
    const std::size_t head_sent = std::min(sent_, head.size());
    const Moved moved = send(head.subspan(head_sent), body.subspan(sent_ - head_sent));
    sent_ += moved.bytes;
    exchange->bytes_moved += moved.bytes;
    // The other side may have answered before it hung up: what it said is read first.
    send_broken_ = moved.broken;
    if (moved.blocked || moved.broken) return;
  }
}

HttpConnection::Outcome HttpConnection::receive_available() {
  std::array<std::byte, kScratchBytes> scratch;
  // TLS may hold decrypted bytes back that epoll knows nothing of, so there it goes on to the end.
  for (std::size_t turn = 0; tls_ || turn < kTurnBytesMax;) {
    const bool direct = parser_->direct_bytes() > 0;
    const MutableByteView into = direct ? exchange->room() : MutableByteView(scratch);
    const Moved moved = receive(into);
    if (moved.blocked) return send_broken_ ? end_of_input(true) : Outcome::kWaiting;
    if (moved.ended || moved.broken) return end_of_input(moved.broken);
    turn += moved.bytes;
    answered_ = true;
    exchange->bytes_moved += moved.bytes;
    std::size_t taken = moved.bytes;
    if (direct) {
      exchange->filled(moved.bytes);
      parser_->take_direct(moved.bytes);
    } else {
      const Result<std::size_t> consumed = parser_->consume(into.first(moved.bytes));
      if (!consumed) return fail(consumed.error());
      taken = *consumed;
    }
    if (parser_->done()) {
      // Bytes behind the end belong to no answer, and a request that was answered before it was
      // sent leaves its rest on the wire: neither connection can be trusted with another.
      reusable_ = parser_->keep_alive() && taken == moved.bytes && !wants_write() && !send_broken_;
      return Outcome::kDone;
    }
    // A plain socket that gave less than it could is empty.
    if (!tls_ && moved.bytes < into.size()) break;
  }
  wake_at(parser_->direct_bytes());
  // If more is there, the level-triggered loop will say so again.
  return Outcome::kWaiting;
}

void HttpConnection::wake_at(std::uint64_t expected) {
  if (tls_) return;
  const int bytes = static_cast<int>(std::clamp<std::uint64_t>(expected, 1, kWakeBytesMax));
  if (bytes == low_water_) return;
  low_water_ = bytes;
  ::setsockopt(fd(), SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

HttpConnection::Outcome HttpConnection::end_of_input(bool broken) {
  if (broken) {
    return fail(
        Status(StatusCode::kUnavailable, error_.empty() ? "the connection was closed" : error_));
  }
  Status status = parser_->finish();
  return status.ok() ? Outcome::kDone : fail(std::move(status));
}

HttpConnection::Outcome HttpConnection::fail(Status status) {
  failure_ = status.with_context(exchange->describe());
  return Outcome::kFailed;
}

HttpConnection::Moved HttpConnection::send(ByteView first, ByteView second) {
  if (tls_) {
    const ByteView piece = first.empty() ? second : first;
    std::size_t sent = 0;
    const CURLcode code = curl_easy_send(easy_, piece.data(), piece.size(), &sent);
    if (code == CURLE_AGAIN) return {.blocked = true};
    if (code == CURLE_OK) return {.bytes = sent};
    error_ = curl_easy_strerror(code);
    return {.broken = true};
  }
  // sendmsg() does not write through the pointers, though its type says it may.
  std::array<iovec, 2> pieces{{{const_cast<std::byte*>(first.data()), first.size()},
                               {const_cast<std::byte*>(second.data()), second.size()}}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  while (true) {
    const ssize_t sent = ::sendmsg(fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return {.bytes = static_cast<std::size_t>(sent)};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {.blocked = true};
    error_ = std::strerror(errno);
    return {.broken = true};
  }
}

HttpConnection::Moved HttpConnection::receive(MutableByteView into) {
  if (tls_) {
    std::size_t got = 0;
    const CURLcode code = curl_easy_recv(easy_, into.data(), into.size(), &got);
    if (code == CURLE_AGAIN) return {.blocked = true};
    if (code == CURLE_OK) return {.bytes = got, .ended = got == 0};
    error_ = curl_easy_strerror(code);
    return {.broken = true};
  }
  while (true) {
    const ssize_t got = ::recv(fd(), into.data(), into.size(), MSG_DONTWAIT);
    if (got >= 0) return {.bytes = static_cast<std::size_t>(got), .ended = got == 0};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {.blocked = true};
    error_ = std::strerror(errno);
    return {.broken = true};
  }
}

}  // namespace millrace
