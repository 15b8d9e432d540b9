#include "tests/servers/http_session.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <thread>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

// After the system's headers: linux/sockios.h needs them.
#include <linux/sockios.h>

namespace millrace::testing {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
// A body is read in steps, so that memory follows what arrived and not what was announced.
constexpr size_t kBodyStepBytes = 1024 * 1024;
constexpr size_t kChunkBytes = 64 * 1024;
constexpr size_t kDrainBytesMax = 64 * 1024 * 1024;
constexpr size_t kChunkLineBytesMax = 1024;

std::optional<uint64_t> parse_number(std::string_view text, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 416:
      return "Range Not Satisfiable";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Unnamed";
  }
}

std::string http_date_now() {
  const time_t now = std::time(nullptr);
  tm utc{};
  gmtime_r(&now, &utc);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc));
}

std::string in_chunks(std::string_view body, bool complete) {
  std::string framed;
  framed.reserve(body.size() + body.size() / kChunkBytes * 16 + 32);
  while (!body.empty()) {
    const std::string_view chunk = body.substr(0, kChunkBytes);
    fmt::format_to(std::back_inserter(framed), "{:x}\r\n", chunk.size());
    framed.append(chunk).append("\r\n");
    body.remove_prefix(chunk.size());
  }
  if (complete) framed += "0\r\n\r\n";
  return framed;
}

bool has_body(const HttpRequest& request, const HttpResponse& response) {
  return request.method != "HEAD" && response.status != 204 && response.status != 304 &&
         response.status >= 200;
}

std::string response_head(const HttpRequest& request, const HttpResponse& response, bool close) {
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_phrase(response.status));
  for (const auto& [name, value] : response.headers) {
    fmt::format_to(std::back_inserter(head), "{}: {}\r\n", name, value);
  }
  if (!response.headers.has("Date")) head += "Date: " + http_date_now() + "\r\n";
  if (close) head += "Connection: close\r\n";
  if (response.chunked && has_body(request, response)) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (has_body(request, response) || request.method == "HEAD") {
    fmt::format_to(std::back_inserter(head), "Content-Length: {}\r\n",
                   response.declared_length.value_or(response.body.size()));
  }
  return head + "\r\n";
}

}  // namespace

size_t HttpStream::read_some(char* data, size_t size) {
  if (tls_) {
    size_t got = 0;
    return SSL_read_ex(tls_, data, size, &got) == 1 ? got : 0;
  }
  ssize_t got = 0;
  do {
    got = ::recv(fd_, data, size, 0);
  } while (got < 0 && errno == EINTR);
  return got > 0 ? static_cast<size_t>(got) : 0;
}

bool HttpStream::write_all(std::string_view head, std::string_view body) {
  if (tls_) {
    for (std::string_view part : {head, body}) {
      size_t put = 0;
      if (!part.empty() && SSL_write_ex(tls_, part.data(), part.size(), &put) != 1) return false;
    }
    return true;
  }
  while (!head.empty() || !body.empty()) {
    iovec parts[2] = {{const_cast<char*>(head.data()), head.size()},
                      {const_cast<char*>(body.data()), body.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t put = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    const size_t of_head = std::min(static_cast<size_t>(put), head.size());
    head.remove_prefix(of_head);
    body.remove_prefix(static_cast<size_t>(put) - of_head);
  }
  return true;
}

void HttpStream::wait_until_delivered() {
  for (int i = 0; i < 200; ++i) {
    int queued = 0;
    if (::ioctl(fd_, SIOCOUTQ, &queued) != 0 || queued == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void HttpStream::finish_politely() {
  ::shutdown(fd_, SHUT_WR);
  char scratch[kReadBytes];
  // Raw bytes even under TLS: nobody looks at them.
  for (size_t total = 0; total < kDrainBytesMax;) {
    const ssize_t got = ::recv(fd_, scratch, sizeof scratch, 0);
    if (got <= 0) return;
    total += static_cast<size_t>(got);
  }
}

bool HttpSession::fill() {
  if (position_ > 0) {
    buffer_.erase(0, position_);
    position_ = 0;
  }
  const size_t old_size = buffer_.size();
  buffer_.resize(old_size + kReadBytes);
  const size_t got = stream_.read_some(buffer_.data() + old_size, kReadBytes);
  buffer_.resize(old_size + got);
  return got > 0;
}

bool HttpSession::read_exactly(uint64_t size, std::string& out) {
  const size_t buffered = std::min<uint64_t>(size, buffer_.size() - position_);
  out.append(buffer_, position_, buffered);
  position_ += buffered;
  size -= buffered;
  while (size > 0) {
    const size_t step = std::min<uint64_t>(size, kBodyStepBytes);
    const size_t old_size = out.size();
    out.resize(old_size + step);
    const size_t got = stream_.read_some(out.data() + old_size, step);
    out.resize(old_size + got);
    if (got == 0) return false;
    size -= got;
  }
  return true;
}

bool HttpSession::read_line(std::string& line) {
  size_t end = 0;
  while ((end = buffer_.find("\r\n", position_)) == std::string::npos) {
    if (buffer_.size() - position_ > kChunkLineBytesMax || !fill()) return false;
  }
  line = buffer_.substr(position_, end - position_);
  position_ = end + 2;
  return true;
}

void HttpSession::refuse(int status) {
  HttpResponse response;
  response.status = status;
  response.body = std::string(reason_phrase(status)) + "\n";
  stream_.write_all(response_head({}, response, true), response.body);
  stream_.finish_politely();
}

bool HttpSession::read_chunked_body(HttpRequest& request) {
  while (true) {
    std::string line;
    if (!read_line(line)) return false;
    const auto size = parse_number(std::string_view(line).substr(0, line.find(';')), 16);
    if (!size || *size > options_.body_bytes_max - request.body.size()) {
      refuse(size ? 413 : 400);
      return false;
    }
    if (*size == 0) break;
    std::string crlf;
    if (!read_exactly(*size, request.body) || !read_exactly(2, crlf)) return false;
    if (crlf != "\r\n") {
      refuse(400);
      return false;
    }
  }
  for (std::string trailer = "x"; !trailer.empty();) {
    if (!read_line(trailer)) return false;
  }
  return true;
}

bool HttpSession::read_body(HttpRequest& request) {
  const std::string* length = request.headers.find("Content-Length");
  const std::string* coding = request.headers.find("Transfer-Encoding");
  const std::optional<uint64_t> size = length ? parse_number(*length, 10) : 0;
  // Both, or two lengths, is how requests are smuggled past a proxy: refuse.
  if (!size || request.headers.count("Content-Length") > 1 || (length && coding) ||
      (coding && *coding != "chunked")) {
    refuse(400);
    return false;
  }
  if (*size > options_.body_bytes_max) {
    refuse(413);
    return false;
  }
  if (request.headers.get("Expect") == "100-continue" &&
      !stream_.write_all("HTTP/1.1 100 Continue\r\n\r\n")) {
    return false;
  }
  return coding ? read_chunked_body(request) : read_exactly(*size, request.body);
}

std::optional<HttpRequest> HttpSession::read_request() {
  size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n", position_)) == std::string::npos) {
    if (buffer_.size() - position_ > options_.header_bytes_max) {
      refuse(431);
      return std::nullopt;
    }
    if (!fill()) return std::nullopt;
  }
  if (end - position_ > options_.header_bytes_max) {
    refuse(431);
    return std::nullopt;
  }
  auto request = parse_request_head(std::string_view(buffer_).substr(position_, end - position_));
  position_ = end + 4;
  if (!request) {
    refuse(400);
    return std::nullopt;
  }
  if (!read_body(*request)) return std::nullopt;
  return request;
}

bool HttpSession::send_body(std::string_view head, std::string_view body,
                            uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return stream_.write_all(head, body);
  // Twenty steps a second, so that a slow body looks slow and not like a row of pauses.
  const uint64_t step = std::max<uint64_t>(1, bytes_per_second / 20);
  const std::chrono::nanoseconds pause(std::chrono::nanoseconds::period::den * step /
                                       bytes_per_second);
  if (!stream_.write_all(head)) return false;
  while (!body.empty()) {
    if (!pause_(pause) || !stream_.write_all(body.substr(0, step))) return false;
    body.remove_prefix(std::min<uint64_t>(step, body.size()));
  }
  return true;
}

HttpSession::Ending HttpSession::write_response(const HttpRequest& request,
                                                const HttpResponse& response) {
  if (response.delay_before.count() > 0 && !pause_(response.delay_before)) return Ending::kClose;
  if (response.drop_connection) return Ending::kReset;
  const bool close = response.close_connection || request.headers.get("Connection") == "close";
  const std::string head = response_head(request, response, close);

  std::string_view body;
  if (has_body(request, response)) body = response.body;
  const std::optional<uint64_t> cut =
      response.reset_after_bytes ? response.reset_after_bytes : response.close_after_bytes;
  if (cut) body = body.substr(0, std::min<uint64_t>(*cut, body.size()));
  std::string framed;
  if (response.chunked && has_body(request, response)) {
    framed = in_chunks(body, !cut);
    body = framed;
  }
  if (!send_body(head, body, response.drip_bytes_per_second)) return Ending::kClose;
  if (response.reset_after_bytes) {
    stream_.wait_until_delivered();
    return Ending::kReset;
  }
  return cut || close ? Ending::kClose : Ending::kKeepOpen;
}

}  // namespace millrace::testing
