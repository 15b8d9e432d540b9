// One connection of HttpServer: bytes, requests, answers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tests/servers/http_server.h"

struct ssl_st;  // OpenSSL's SSL.

namespace millrace::testing {

// A connected socket, with TLS or without. Owns neither; used by one thread.
class HttpStream {
 public:
  HttpStream(int fd, ssl_st* tls) : fd_(fd), tls_(tls) {}

  // Waits for at least one byte. 0 at the end of the stream and after any error.
  size_t read_some(char* data, size_t size);
  // Sends head and body with one system call where the socket takes them. False after any error.
  bool write_all(std::string_view head, std::string_view body = {});
  // Waits (at most 200 ms) until the peer has what was written, so that an RST cannot overtake it.
  void wait_until_delivered();
  // Sends FIN and swallows what the peer still sends, so that it reads our answer before an RST.
  void finish_politely();

 private:
  int fd_;
  ssl_st* tls_;
};

// Parses "METHOD target HTTP/1.x\r\nName: value\r\n..." without the final empty line.
// Nothing when it is not well-formed: bare line feeds, folded lines and odd names are refused.
std::optional<HttpRequest> parse_request_head(std::string_view head);

class HttpSession {
 public:
  // Sleeps; false when the server is stopping.
  using Pause = std::function<bool(std::chrono::nanoseconds)>;
  enum class Ending { kKeepOpen, kClose, kReset };

  HttpSession(HttpStream stream, const HttpServerOptions& options, Pause pause)
      : stream_(stream), options_(options), pause_(std::move(pause)) {}

  // The next request with its body. Nothing when the connection is at its end, or when the
  // request was refused (the refusal has been sent).
  std::optional<HttpRequest> read_request();
  // Sends the answer with all its misbehaviour; says how the connection goes on.
  Ending write_response(const HttpRequest& request, const HttpResponse& response);

 private:
  bool fill();  // Reads more into buffer_; false at the end.
  bool read_exactly(uint64_t size, std::string& out);
  bool read_line(std::string& line);
  bool read_body(HttpRequest& request);
  bool read_chunked_body(HttpRequest& request);
  void refuse(int status);
  bool send_body(std::string_view head, std::string_view body, uint64_t bytes_per_second);

  HttpStream stream_;
  const HttpServerOptions& options_;
  const Pause pause_;
  std::string buffer_;  // Received and not yet used: [position_, size).
  size_t position_ = 0;
};

}  // namespace millrace::testing
