#include "tests/servers/fault_proxy_connection.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace millrace::testing {
namespace {

using std::chrono::steady_clock;

struct ErrorAnswer {
  int status;
  std::string_view reason;
  std::string_view code;
};

std::optional<ErrorAnswer> error_answer(Fault fault) {
  switch (fault) {
    case Fault::kInternalError:
      return ErrorAnswer{500, "Internal Server Error", "InternalError"};
    case Fault::kBadGateway:
      return ErrorAnswer{502, "Bad Gateway", "BadGateway"};
    case Fault::kServiceUnavailable:
      return ErrorAnswer{503, "Service Unavailable", "ServiceUnavailable"};
    case Fault::kGatewayTimeout:
      return ErrorAnswer{504, "Gateway Timeout", "GatewayTimeout"};
    case Fault::kSlowDown:
      return ErrorAnswer{503, "Slow Down", "SlowDown"};
    case Fault::kOkError:
    case Fault::kOkErrorExecuted:
      return ErrorAnswer{200, "OK", "InternalError"};
    default:
      return std::nullopt;
  }
}

bool is_read(const ProxiedRequest& request) {
  return request.method == "GET" || request.method == "HEAD";
}

}  // namespace

ProxyConnection::ProxyConnection(int client_fd, Upstream upstream, ProxyLedger& ledger, int stop_fd)
    : ledger_(ledger), upstream_(std::move(upstream)), stop_fd_(stop_fd) {
  client_.adopt(client_fd);
}

void ProxyConnection::run() {
  // splice() has no MSG_NOSIGNAL.
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  (void)pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  while (serve_one()) {
  }
  client_.close();
  server_.close();
}

void ProxyConnection::abort() {
  client_.abort();
  server_.abort();
}

void ProxyConnection::abort_with_reset() {
  client_.abort_with_reset();
  server_.abort_with_reset();
}

bool ProxyConnection::serve_one() {
  Exchange exchange;
  exchange.head = read_head(client_);
  auto request = parse_request(exchange.head);
  if (!request) return false;
  exchange.request = *std::move(request);
  const auto decision = ledger_.begin(exchange.request);
  exchange.fault = decision.fault;
  exchange.settings = decision.settings;
  request_body_left_ = false;
  const bool awake =
      exchange.settings.latency.count() == 0 ||
      sleep_unless_closed(client_.fd(), stop_fd_, steady_clock::now() + exchange.settings.latency);
  const bool keep = awake && serve(exchange);
  ledger_.end();
  if (!keep || wants_close(exchange.head) || request_body_left_) {
    client_.close_gracefully();
    return false;
  }
  return true;
}

bool ProxyConnection::serve(Exchange& exchange) {
  switch (exchange.fault) {
    case Fault::kOkError:
    case Fault::kOkErrorExecuted:
      if (is_read(exchange.request)) {
        ledger_.fault_without_effect();
        exchange.fault = Fault::kNone;
        return forward(exchange) && deliver(exchange);
      }
      return exchange.fault == Fault::kOkError ? answer_in_place(exchange)
                                               : answer_after_execution(exchange);
    case Fault::kInternalError:
    case Fault::kBadGateway:
    case Fault::kServiceUnavailable:
    case Fault::kGatewayTimeout:
    case Fault::kSlowDown:
    case Fault::kResetBeforeForward:
    case Fault::kCloseWithoutAnswer:
    case Fault::kStall:
      return answer_in_place(exchange);
    case Fault::kLostAnswer:
      return answer_after_execution(exchange);
    default:
      return forward(exchange) && deliver(exchange);
  }
}

bool ProxyConnection::answer_in_place(const Exchange& exchange) {
  ledger_.fault_took_effect(exchange.fault);
  if (exchange.fault == Fault::kStall) return stall();
  if (exchange.fault == Fault::kResetBeforeForward) {
    client_.reset();
    return false;
  }
  // A client that waits for "100 Continue" takes the error as its answer and sends no body.
  request_body_left_ = !exchange.request.header("expect").empty() && client_.buffered().empty();
  if (!request_body_left_ && !discard_request_body(exchange)) return false;
  return exchange.fault != Fault::kCloseWithoutAnswer && send_error(exchange);
}

bool ProxyConnection::answer_after_execution(Exchange& exchange) {
  if (!forward(exchange) || !discard_response_body(exchange)) return false;
  ledger_.fault_took_effect(exchange.fault);
  if (exchange.fault == Fault::kOkErrorExecuted) return send_error(exchange);
  client_.reset();
  return false;
}

// Holds the connection, half-open or idle, until the client or the proxy ends it.
bool ProxyConnection::stall() {
  (void)sleep_unless_closed(client_.fd(), stop_fd_, steady_clock::now() + std::chrono::hours(24));
  return false;
}

bool ProxyConnection::send_error(const Exchange& exchange) {
  const auto error = error_answer(exchange.fault);
  const std::string body = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{}</Code><Message>Injected: {}."
      "</Message><RequestId>fault-proxy-{}</RequestId></Error>",
      error->code, fault_name(exchange.fault), exchange.request.sequence);
  std::string answer =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: application/xml\r\nContent-Length: {}\r\n",
                  error->status, error->reason, body.size());
  if (exchange.fault == Fault::kSlowDown && exchange.settings.retry_after) {
    answer += fmt::format("Retry-After: {}\r\n", exchange.settings.retry_after->count());
  }
  answer += request_body_left_ ? "Connection: close\r\n\r\n" : "\r\n";
  if (exchange.request.method != "HEAD") answer += body;
  return client_.send(answer);
}

// --- towards the server ----------------------------------------------------------------------

bool ProxyConnection::connect_upstream() {
  server_reused_ = server_.open() && !server_.stale();
  if (server_reused_) return true;
  server_.close();
  return server_.connect(upstream_.host, upstream_.port);
}

// Sends the request and reads the head of the answer. When the server is not there or breaks off,
// the client's connection is reset: nearer to a dead server than any answer of ours.
bool ProxyConnection::forward(Exchange& exchange) {
  // The server may close an idle connection at the very moment when we use it again. A client
  // without a proxy would try once more on a new one.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!connect_upstream()) break;
    const bool body_follows = exchange.request.content_length.value_or(0) > 0;
    if (!server_.send(exchange.head, body_follows && !client_.buffered().empty())) break;
    const Relayed body = forward_body(exchange);
    if (body == Relayed::kAnswered) return true;
    if (body == Relayed::kComplete && read_response_head(exchange)) return true;
    if (!server_reused_ || !is_read(exchange.request)) break;
    server_.close();
  }
  ledger_.upstream_failed();
  server_.close();
  client_.reset();
  return false;
}

ProxyConnection::Relayed ProxyConnection::forward_body(Exchange& exchange) {
  BodyReader body = BodyReader::of_request(exchange.head);
  const std::uint64_t rate = exchange.settings.bandwidth_bytes_per_second;
  bool flip = exchange.fault == Fault::kFlipRequestBit;
  if (flip && body.empty()) ledger_.fault_without_effect();
  const std::uint64_t flip_at = flip_offset(exchange.request.sequence, body.length().value_or(1));
  std::uint64_t passed = 0;
  for (;;) {
    BodyReader::Piece piece;
    switch (body.next(client_, &piece)) {
      case BodyReader::Step::kDone:
        return Relayed::kComplete;
      case BodyReader::Step::kBroken:
        return Relayed::kFailed;
      case BodyReader::Step::kNeedInput: {
        const Awaited awaited = await_input_or_answer(exchange);
        request_body_left_ = awaited == Awaited::kAnswer;
        if (awaited == Awaited::kAnswer) return Relayed::kAnswered;
        if (awaited == Awaited::kFailure) return Relayed::kFailed;
        if (!fetch_request_body(body, rate == 0 && !flip)) return Relayed::kFailed;
        continue;
      }
      case BodyReader::Step::kPiece:
        break;
    }
    if (!piece.payload) {
      if (!server_.send({piece.bytes.data(), piece.bytes.size()})) return Relayed::kFailed;
      body.consume(client_, piece.bytes.size());
      continue;
    }
    const auto bytes = piece.bytes.first(Pacer::piece(piece.bytes.size(), rate));
    if (flip && flip_at < passed + bytes.size()) {
      bytes[static_cast<std::size_t>(flip_at - passed)] ^= 1;
      flip = false;
      ledger_.fault_took_effect(exchange.fault);
    }
    ledger_.add_bytes_up(bytes.size());
    passed += bytes.size();
    // An answer may already wait when the server stops listening, as for a body that is too large.
    if (!server_.send({bytes.data(), bytes.size()})) {
      request_body_left_ = true;
      return read_response_head(exchange) ? Relayed::kAnswered : Relayed::kFailed;
    }
    body.consume(client_, bytes.size());
    if (!up_.wait(bytes.size(), rate, client_.fd(), stop_fd_)) return Relayed::kFailed;
  }
}

// Waits for more of the request body, and meanwhile for what the server says to its head: to go on
// (passed to the client), or a final answer before the body is complete.
ProxyConnection::Awaited ProxyConnection::await_input_or_answer(Exchange& exchange) {
  for (;;) {
    std::array<pollfd, 2> input{{{.fd = client_.fd(), .events = POLLIN, .revents = 0},
                                 {.fd = server_.fd(), .events = POLLIN, .revents = 0}}};
    if (::poll(input.data(), input.size(), -1) < 0) continue;
    // The server first: a client that goes on sending must not hide its refusal.
    if (input[1].revents == 0) return Awaited::kInput;
    std::string head = read_head(server_);
    const int status = response_status(head);
    if (status == 0) return Awaited::kFailure;
    if (status >= 200) {
      exchange.response_head = std::move(head);
      return Awaited::kAnswer;
    }
    if (!client_.send(head)) return Awaited::kFailure;
  }
}

bool ProxyConnection::fetch_request_body(BodyReader& body, bool untouched) {
  if (!untouched || body.run_left() < kSpliceBytesMin) return client_.fill();
  const std::size_t count = client_.splice_to(server_, body.run_left());
  body.skip(count);
  ledger_.add_bytes_up(count);
  return count > 0;
}

bool ProxyConnection::read_response_head(Exchange& exchange) {
  for (;;) {
    exchange.response_head = read_head(server_);
    const int status = response_status(exchange.response_head);
    if (status == 0 || status >= 200) return status != 0;
    if (!client_.send(exchange.response_head)) return false;
  }
}

bool ProxyConnection::discard_request_body(const Exchange& exchange) {
  BodyReader body = BodyReader::of_request(exchange.head);
  for (;;) {
    BodyReader::Piece piece;
    const auto step = body.next(client_, &piece);
    if (step == BodyReader::Step::kDone) return true;
    if (step == BodyReader::Step::kBroken) return false;
    if (step == BodyReader::Step::kNeedInput && !client_.fill()) return false;
    if (step != BodyReader::Step::kPiece) continue;
    if (piece.payload) ledger_.add_bytes_up(piece.bytes.size());
    body.consume(client_, piece.bytes.size());
  }
}

bool ProxyConnection::discard_response_body(const Exchange& exchange) {
  BodyReader body = BodyReader::of_response(exchange.response_head, exchange.request.method);
  for (;;) {
    BodyReader::Piece piece;
    const auto step = body.next(server_, &piece);
    if (step == BodyReader::Step::kDone) return true;
    if (step == BodyReader::Step::kBroken) return false;
    if (step == BodyReader::Step::kPiece) body.consume(server_, piece.bytes.size());
    if (step == BodyReader::Step::kNeedInput && !server_.fill()) return body.ends_with_connection();
  }
}

}  // namespace millrace::testing
