// A small HTTP/1.1 server for tests. It answers on 127.0.0.1 and can misbehave on purpose.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/servers/test_tls.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX, kept out of this header.

namespace millrace::testing {

// Header fields in the order they were sent. Names compare without regard to case.
class HttpHeaders {
 public:
  using Field = std::pair<std::string, std::string>;

  HttpHeaders() = default;
  HttpHeaders(std::initializer_list<Field> fields) : fields_(fields) {}

  // The first value of that name, or null when the field is absent.
  const std::string* find(std::string_view name) const;
  // The first value of that name, or an empty string.
  std::string get(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  size_t count(std::string_view name) const;
  // Replaces every field of that name by one.
  void set(std::string_view name, std::string value);
  void add(std::string_view name, std::string value);
  void remove(std::string_view name);

  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }
  size_t size() const { return fields_.size(); }

 private:
  std::vector<Field> fields_;
};

using HttpQuery = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;
  std::string target;    // As sent: raw_path[?raw_query].
  std::string raw_path;  // Still percent-encoded.
  std::string raw_query;
  std::string path;  // Percent-decoded.
  HttpQuery query;   // Decoded, in the order sent; "?a" gives {"a", ""}.
  HttpHeaders headers;
  std::string body;
  uint64_t connection_id = 0;  // Counts from 1, so a test can tell a reused connection.

  // The decoded value of the first parameter of that name, or nothing.
  std::optional<std::string> query_value(std::string_view name) const;
  bool has_query(std::string_view name) const { return query_value(name).has_value(); }
};

// What to answer. Everything below `body` is a way to misbehave or to be slow.
struct HttpResponse {
  int status = 200;
  HttpHeaders headers;  // Content-Length, Date and Connection are added by the server.
  std::string body;     // Left out for HEAD, 204 and 304; its length is still declared for HEAD.

  // Content-Length to claim instead of body.size(). The body is sent whole whatever is claimed.
  std::optional<uint64_t> declared_length;
  // Cut the body after that many bytes, then FIN. For a cut before the head see drop_connection.
  std::optional<uint64_t> close_after_bytes;
  // Cut the body after that many bytes, then RST.
  std::optional<uint64_t> reset_after_bytes;
  std::chrono::milliseconds delay_before{0};
  uint64_t drip_bytes_per_second = 0;  // 0: as fast as the socket takes it.
  bool chunked = false;                // Transfer-Encoding: chunked instead of Content-Length.
  bool close_connection = false;       // Say "Connection: close" and close after the answer.
  bool drop_connection = false;        // RST without a single byte of answer.
};

struct HttpServerOptions {
  std::optional<TlsIdentity> tls = {};
  size_t header_bytes_max = 64 * 1024;
  size_t body_bytes_max = size_t{512} * 1024 * 1024;
  int connections_max = 4096;  // Further ones are closed at once.
};

// Decodes %XX; with plus_is_space also '+' (as in a query). Malformed escapes stay as they are.
std::string percent_decode(std::string_view text, bool plus_is_space = false);

// Serves from construction to destruction, one thread per connection plus one that accepts.
// The handler is called on those threads, so it must be safe to call concurrently; an exception
// that leaves it becomes a 500. The destructor breaks every connection, idle, stalled or busy,
// and joins; it waits for handlers that are running.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // Throws std::runtime_error when no socket or TLS context can be made.
  explicit HttpServer(Handler handler, HttpServerOptions options = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const { return port_; }
  // "http://127.0.0.1:PORT" or "https://127.0.0.1:PORT".
  std::string url() const;
  uint64_t connections_accepted() const { return accepted_.load(); }
  int connections_open() const { return open_.load(); }
  // Breaks every open connection (FIN); new ones are welcome.
  void close_connections();

 private:
  struct Connection;

  void accept_loop();
  void serve(Connection& connection, int fd);
  void reap_finished();
  // Sleeps, but no longer than the server lives; false when it is stopping.
  bool pause(std::chrono::nanoseconds duration);

  // Constant after construction.
  const Handler handler_;
  const HttpServerOptions options_;
  std::shared_ptr<ssl_ctx_st> tls_;
  int listener_ = -1;
  int wake_ = -1;  // eventfd that ends accept_loop.
  uint16_t port_ = 0;

  // Synchronise themselves.
  std::atomic<uint64_t> accepted_{0};
  std::atomic<int> open_{0};

  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stopping_ = false;
  std::list<Connection> connections_;

  std::thread acceptor_;
};

}  // namespace millrace::testing
