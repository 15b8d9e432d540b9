#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>

#include <curl/curl.h>

#include "base/status.h"
#include "platform/curl_http_client.h"
#include "platform/event_loop.h"

namespace millrace {

// Opens connections through libcurl's multi socket interface: name look-up, TCP (both address
// families), proxy tunnel, TLS with verification. A handle stays in the multi handle as long as its
// connection is used, and close() ends both.
//
// libcurl counts a connection that it has made as resting from then on. Whenever it makes another,
// it looks through those that rest, and closes what is older than two minutes or has bytes to read.
// So each handle has a pool of its own, in which libcurl meets no other connection; and what it
// closes all the same is only its own descriptor, see HttpConnection.
//
// Everything but connections_opened() runs on the loop's thread.
class CurlConnector {
 public:
  // Told once per connect(): the socket, or why there is none.
  using Connected = std::function<void(CURL* easy, Result<int> fd)>;

  CurlConnector(EventLoop& loop, const CurlHttpClientOptions& options, Connected connected);
  // Everything must be closed before.
  ~CurlConnector();

  // Begins to connect to "https://host:port". The answer comes later, never from inside. Null when
  // libcurl is out of memory.
  CURL* connect(const std::string& origin, const std::string& ca_bundle, bool tls);
  // Ends a connection, or the attempt at one.
  void close(CURL* easy);

  std::uint64_t connections_opened() const { return connections_opened_; }

 private:
  void act(curl_socket_t socket, int events);

  static int on_socket(CURL* easy, curl_socket_t fd, int what, void* self, void* ignored);
  static int on_timer(CURLM* multi, long timeout_ms, void* self);
  static curl_socket_t open_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int close_socket(void* self, curl_socket_t fd);

  // Constant after construction.
  EventLoop& loop_;
  const CurlHttpClientOptions& options_;
  const Connected connected_;
  CURLM* multi_ = nullptr;

  // Touched by the loop's thread only.
  EventLoop::TimerId timer_ = 0;

  std::atomic<std::uint64_t> connections_opened_{0};
};

}  // namespace millrace
