#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/limiter.h"
#include "platform/http_client.h"

namespace millrace {

struct CurlHttpClientOptions {
  // Threads, each with its own loop and connections. One moves several GB/s.
  std::size_t loops = 1;
  // Open connections over all loops; requests beyond it wait inside for one.
  std::size_t connections_max = 1024;
  // Requests beyond it are refused with kResourceExhausted.
  std::size_t requests_in_flight_max = 8192;
  Duration connect_timeout = std::chrono::seconds(5);
  // A transfer that stays below this rate for this long is given up as kUnavailable, so that a
  // dripping server costs seconds and not the whole deadline. 0 bytes: never.
  std::uint64_t stall_bytes_per_second = 1024;
  Duration stall_window = std::chrono::seconds(10);
  // Trusted certificates for https. Empty: AWS_CA_BUNDLE or SSL_CERT_FILE if set, else the first of
  // the places where distributions keep them.
  std::string ca_bundle = {};
  std::string user_agent = {};  // Empty: "millrace/<version>".
  // Hosts that are reached without the proxy of http_proxy and its like. Empty: no_proxy's, and
  // this machine and its link: metadata services that hand out credentials are never a proxy's
  // business.
  std::string no_proxy = {};
};

// HttpClient on event loops that carry thousands of requests each. libcurl makes the connections
// (names, proxies, TLS) through its multi socket interface; over them we speak HTTP/1.1 ourselves,
// see HttpConnection for why. HTTP/1.1 only: for bulk reads several connections beat one
// multiplexed one. The usual proxy variables are honoured.
//
// Destruction cancels what is in flight; every completion is answered before it returns.
class CurlHttpClient final : public HttpClient {
 public:
  explicit CurlHttpClient(CurlHttpClientOptions options = {});
  ~CurlHttpClient() override;

  void send(const RequestContext& context, HttpRequest request,
            Completion<HttpResponse> done) override;

  // Connections that were opened since the start: tests assert reuse with it.
  std::uint64_t connections_opened() const;

 private:
  // Constant after construction.
  CurlHttpClientOptions options_;

  // Synchronise themselves.
  Limiter in_flight_;
  std::atomic<std::uint64_t> next_loop_{0};

  std::vector<std::unique_ptr<class HttpLoop>> loops_;  // Last: they answer through the others.
};

}  // namespace millrace
