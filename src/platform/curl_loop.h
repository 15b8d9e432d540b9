#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <curl/curl.h>

#include "platform/curl_http_client.h"
#include "platform/curl_transfer.h"
#include "platform/event_loop.h"

namespace millrace {

// One event loop with one curl multi handle. libcurl says which sockets and which time it waits
// for; the loop tells it what happened. Everything but start() and connections_opened() runs on the
// loop's thread.
class CurlLoop {
 public:
  CurlLoop(std::string name, const CurlHttpClientOptions& options, std::size_t connections_max);
  // Cancels and answers every transfer.
  ~CurlLoop();

  // Takes over a request that has been admitted. Safe from any thread.
  void start(std::unique_ptr<CurlTransfer> transfer);

  std::uint64_t connections_opened() const { return connections_opened_; }

 private:
  void begin(std::unique_ptr<CurlTransfer> transfer);
  void cancel(std::uint64_t transfer_id);
  void act(curl_socket_t socket, int events);
  void reap();
  void finish(CurlTransfer& transfer, CURLcode code);

  static int on_socket(CURL* easy, curl_socket_t fd, int what, void* self, void* ignored);
  static int on_timer(CURLM* multi, long timeout_ms, void* self);
  static curl_socket_t open_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int close_socket(void* self, curl_socket_t fd);

  CURL* take_handle();
  void return_handle(CURL* easy);

  // Constant after construction.
  const CurlHttpClientOptions& options_;
  CURLM* multi_ = nullptr;

  // Touched by the loop's thread only.
  std::unordered_map<std::uint64_t, std::unique_ptr<CurlTransfer>> transfers_;
  // Sockets of connections. libcurl also has descriptors of its own (the resolver's), which it
  // closes without telling: only these may stay in the event loop while they rest.
  std::unordered_set<curl_socket_t> connections_;
  std::vector<CURL*> idle_handles_;  // Making a handle costs more than a small request.
  EventLoop::TimerId timer_ = 0;

  std::atomic<std::uint64_t> next_transfer_id_{1};
  std::atomic<std::uint64_t> connections_opened_{0};

  EventLoop loop_;  // Last, so that its thread stops before what it uses goes.
};

}  // namespace millrace
