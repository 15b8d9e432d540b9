#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tests/servers/fault_proxy_http.h"
#include "tests/servers/fault_proxy_ledger.h"
#include "tests/servers/fault_proxy_socket.h"

namespace millrace::testing {

struct Upstream {
  std::string host;
  std::uint16_t port = 0;
};

// One client connection and its own connection to the server. run() serves requests on the calling
// thread until one side leaves; abort() and abort_with_reset() may come from any other thread.
class ProxyConnection {
 public:
  // Takes the client's descriptor. `stop_fd` becomes readable when the proxy stops.
  ProxyConnection(int client_fd, Upstream upstream, ProxyLedger& ledger, int stop_fd);

  void run();
  void abort();
  void abort_with_reset();

 private:
  // One request on its way through: what was decided, and what has been seen so far.
  struct Exchange {
    ProxiedRequest request;
    std::string head;  // Of the request, as it came.
    Fault fault = Fault::kNone;
    ProxySettings settings;
    std::string response_head;  // Filled in by forward().
  };
  // How to change a body in passing: stop before a byte of the payload, or flip a bit of it.
  struct BodyChange {
    enum class Kind { kNone, kCut, kFlip };
    Kind kind = Kind::kNone;
    // Nothing where the length is unknown: the middle of the first piece, whatever that is.
    std::optional<std::uint64_t> at;
  };
  enum class Relayed { kComplete, kCut, kFailed, kAnswered };

  // All of these return whether the client connection can take another request.
  bool serve_one();
  bool serve(Exchange& exchange);
  bool answer_in_place(const Exchange& exchange);
  bool answer_after_execution(Exchange& exchange);
  bool deliver(Exchange& exchange);
  bool deliver_cut(const Exchange& exchange, BodyReader& body);
  bool deliver_short_chunks(BodyReader& body);
  bool stall();

  bool connect_upstream();
  bool forward(Exchange& exchange);
  Relayed forward_body(Exchange& exchange);
  // Reads heads from the server up to the final one, passing interim ones on.
  bool read_response_head(Exchange& exchange);
  enum class Awaited { kInput, kAnswer, kFailure };
  Awaited await_input_or_answer(Exchange& exchange);
  // Brings in more of the request body, past our buffer where the body stays as it is.
  bool fetch_request_body(BodyReader& body, bool untouched);
  Relayed relay_response(BodyReader& body, const BodyChange& change, std::uint64_t rate);
  bool discard_request_body(const Exchange& exchange);
  bool discard_response_body(const Exchange& exchange);
  bool send_error(const Exchange& exchange);
  bool send_paced(std::string_view bytes, std::uint64_t rate);
  bool change_head(Exchange& exchange);

  ProxyLedger& ledger_;
  const Upstream upstream_;
  const int stop_fd_;
  BufferedSocket client_;
  BufferedSocket server_;
  bool server_reused_ = false;
  bool request_body_left_ = false;  // The answer came before the client had sent everything.
  Pacer up_;
  Pacer down_;
};

}  // namespace millrace::testing
