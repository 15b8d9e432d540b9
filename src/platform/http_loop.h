#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "platform/curl_connector.h"
#include "platform/event_loop.h"
#include "platform/http_connection.h"

namespace millrace {

// One event loop with its connections and the exchanges on them. Everything but start() and
// connections_opened() runs on the loop's thread.
//
// Invariants:
//  1. An exchange is in exchanges_ from begin() until it is answered, and in exactly one of:
//  waiting_,
//     on a connection that is being made, on one that is busy.
//  2. A connection is busy (has an exchange) or idle (is in idle_).
//  3. Whatever happens to an idle connection closes it: bytes that belong to no answer must not be
//     taken for the next one's.
class HttpLoop {
 public:
  HttpLoop(std::string name, const CurlHttpClientOptions& options, std::size_t connections_max);
  // Cancels and answers every exchange.
  ~HttpLoop();

  // Takes over a request that has been admitted. Safe from any thread.
  void start(std::unique_ptr<HttpExchange> exchange);

  std::uint64_t connections_opened() const { return connector_->connections_opened(); }

 private:
  void begin(std::unique_ptr<HttpExchange> exchange);
  void place(HttpExchange& exchange);
  bool make_room();
  void open_connection(HttpExchange& exchange, std::string pool_key);
  void on_connected(CURL* easy, Result<int> fd);
  void run(HttpConnection& connection, HttpExchange& exchange);
  void on_ready(HttpConnection& connection, std::uint32_t ready);
  void settle(HttpConnection& connection, HttpConnection::Outcome outcome);
  void rest(HttpConnection& connection);
  void close(HttpConnection& connection);
  void serve_waiting();
  void end(HttpExchange& exchange, Result<HttpResponse> result);
  // Ends an exchange wherever it is.
  void call_off(std::uint64_t id, Status status);
  void arm_deadline();
  void on_deadline();
  void arm_tick();
  void on_tick();

  // Constant after construction.
  const CurlHttpClientOptions& options_;
  const std::size_t connections_max_;

  // Touched by the loop's thread only.
  std::unordered_map<std::uint64_t, std::unique_ptr<HttpExchange>> exchanges_;
  std::unordered_map<CURL*, std::unique_ptr<HttpConnection>> connections_;
  // The one that rested last is taken first: the others may time out.
  std::unordered_map<std::string, std::vector<HttpConnection*>> idle_;
  std::deque<std::uint64_t> waiting_;  // Ids, since an exchange may be called off while it waits.
  std::set<std::pair<TimePoint, std::uint64_t>> deadlines_;
  EventLoop::TimerId deadline_timer_ = 0;
  TimePoint deadline_armed_{};
  bool tick_armed_ = false;

  std::atomic<std::uint64_t> next_id_{1};

  std::unique_ptr<CurlConnector> connector_;
  EventLoop loop_;  // Last, so that its thread stops before what it uses goes.
};

}  // namespace millrace
