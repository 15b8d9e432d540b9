#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/servers/fault_proxy_policy.h"

namespace millrace::testing {

// Shaping that holds for every request, and the parameters of some faults.
struct ProxySettings {
  std::chrono::nanoseconds latency{0};           // Added before each request is handled.
  std::uint64_t bandwidth_bytes_per_second = 0;  // Per connection and direction; 0: unlimited.
  std::size_t connections_max = 0;               // Further ones are reset at once; 0: unlimited.
  std::uint64_t drip_bytes_per_second = 64;      // For Fault::kDrip.
  std::optional<std::chrono::seconds> retry_after{};  // Sent with Fault::kSlowDown.
  std::size_t logged_requests_max = 0;                // Length of requests(); the newest stay.
};

// Counters since the start or the last reset_stats().
struct ProxyStats {
  std::map<std::string, std::uint64_t> requests_by_method;
  std::uint64_t requests = 0;
  // By Fault: those that took effect. A chosen fault that the exchange had no place for (a flip in
  // an empty body, a Content-Range where there is none) lets the answer pass, and counts below.
  std::array<std::uint64_t, kFaultCount> faults{};
  std::uint64_t faults_without_effect = 0;
  std::uint64_t body_bytes_up = 0;    // Of request bodies, received from clients.
  std::uint64_t body_bytes_down = 0;  // Of response bodies, sent to clients.
  std::uint64_t connections_opened = 0;
  std::uint64_t connections_refused = 0;  // By connections_max.
  std::uint64_t upstream_failures = 0;  // The server refused, or left in the middle of an exchange.
  std::size_t connections_open = 0;     // Now; not reset.
  std::size_t requests_in_flight = 0;   // Now; not reset.

  std::uint64_t count(Fault fault) const { return faults[static_cast<std::size_t>(fault)]; }
  std::uint64_t faults_total() const;
};

struct LoggedRequest {
  std::string method;
  std::string target;
  std::string range;           // The Range header, or empty.
  Fault fault = Fault::kNone;  // As chosen by the policy.
  std::uint64_t sequence = 0;
};

// An HTTP/1.1 proxy on 127.0.0.1 that clients use as if it were the S3 server behind it. Heads and
// bodies pass byte for byte, Host included, so that signatures made for the proxy's address stay
// valid. A policy may pick a Fault for each request.
//
// Lifecycle: listens from construction (which throws std::system_error when it cannot) to
// destruction, which ends all connections, stalled ones too, and joins their threads. When the
// server behind it is down, clients see their connection reset.
//
// Concurrency: one thread per client connection, each with its own connection to the server. All
// methods may be called from any thread; a policy must not call back into the proxy.
class FaultProxy {
 public:
  FaultProxy(std::string upstream_host, std::uint16_t upstream_port, ProxySettings settings = {},
             std::uint16_t listen_port = 0);
  // From an endpoint like "http://127.0.0.1:7480", as CephServer::endpoint() returns it.
  explicit FaultProxy(const std::string& upstream_endpoint, ProxySettings settings = {});
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  std::uint16_t port() const;
  std::string endpoint() const;  // "http://127.0.0.1:PORT"

  // An empty policy means no faults. Both hold from the next request on.
  void set_policy(FaultPolicy policy);
  void set_settings(const ProxySettings& settings);

  // Resets every client connection that is open now, idle ones too.
  void reset_connections();

  ProxyStats stats() const;
  void reset_stats();
  // The newest requests, oldest first; empty unless logged_requests_max is set.
  std::vector<LoggedRequest> requests() const;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace millrace::testing
