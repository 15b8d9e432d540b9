#include "frontends/http/http_server_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace millrace {
namespace {

constexpr std::size_t kReceiveBytes = 64 * 1024;
// How much of later requests is taken while one is answered.
constexpr std::size_t kWaitingBytesMax = 64 * 1024;
constexpr Duration kLingerTimeout = std::chrono::seconds(2);

}  // namespace

HttpServerConnection::HttpServerConnection(const HttpServerParts& parts, AcceptedSocket accepted,
                                           Closed closed)
    : parts_(parts),
      accepted_(std::move(accepted)),
      caller_(std::make_shared<const Caller>(Caller{.principal = accepted_.principal, .run = {}})),
      closed_(std::move(closed)),
      parser_(parts.options.limits) {}

HttpServerConnection::~HttpServerConnection() = default;

// ---- Coming and going

void HttpServerConnection::start() {
  parts_.loop.watch(accepted_.socket.descriptor(), EventLoop::kRead,
                    [weak = weak_from_this()](std::uint32_t ready) {
                      if (const auto self = weak.lock()) self->on_ready(ready);
                    });
  arm(parts_.options.idle_timeout);
}

void HttpServerConnection::finish() {
  finishing_ = true;
  if (state_ == State::kReading && !parser_.started()) close();
}

void HttpServerConnection::close() {
  if (state_ == State::kClosed) return;
  const auto self = shared_from_this();
  state_ = State::kClosed;
  disarm();
  parts_.loop.unwatch(accepted_.socket.descriptor());
  ::shutdown(accepted_.socket.descriptor(), SHUT_RDWR);
  ++call_;  // Answers that are still owed find nobody.
  if (context_) context_->cancellation().request();
  context_.reset();
  writer_.reset();
  pass_.reset();
  closed_(*this);
}

void HttpServerConnection::await(State state, std::uint32_t interest) {
  state_ = state;
  parts_.loop.set_interest(accepted_.socket.descriptor(), interest);
}

void HttpServerConnection::arm(Duration timeout) {
  disarm();
  timer_ = parts_.loop.run_at(system_clock().now() + timeout, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_timeout();
  });
}

void HttpServerConnection::disarm() {
  if (timer_ != 0) parts_.loop.cancel_timer(timer_);
  timer_ = 0;
}

void HttpServerConnection::on_timeout() {
  timer_ = 0;
  if (state_ == State::kReading && parser_.started()) {
    refuse({408, {StatusCode::kDeadlineExceeded, "the request took too long to arrive"}});
  } else {
    close();
  }
}

void HttpServerConnection::on_ready(std::uint32_t ready) {
  if (state_ == State::kSending) {
    // Also when it hung up: sending tells.
    send_more();
  } else if (ready & EventLoop::kRead) {
    receive();
  }
}

// ---- Requests

void HttpServerConnection::receive() {
  std::array<std::byte, kReceiveBytes> buffer;
  const ssize_t got =
      ::recv(accepted_.socket.descriptor(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    close();  // A client that ends its side has gone.
  } else {
    take_input(ByteView(buffer).first(static_cast<std::size_t>(got)));
  }
}

void HttpServerConnection::take_input(ByteView bytes) {
  switch (state_) {
    case State::kReading:
      parse(bytes);
      break;
    case State::kHandling:
    case State::kStreaming:
      waiting_ += as_text(bytes);
      // Until it is answered nothing more is read: then nobody notices either when this client
      // goes, but it is one that sends without waiting for answers.
      if (waiting_.size() >= kWaitingBytesMax) await(state_, 0);
      break;
    default:
      break;
  }
}

void HttpServerConnection::parse(ByteView bytes) {
  const bool fresh = !parser_.started();
  while (!bytes.empty() && state_ == State::kReading) {
    const auto taken = parser_.consume(bytes);
    if (!taken) {
      refuse(taken.error());
      return;
    }
    bytes = bytes.subspan(*taken);
    if (parser_.done()) begin_call();
  }
  if (state_ == State::kHandling) waiting_ += as_text(bytes);
  if (state_ != State::kReading) return;
  if (fresh && parser_.started()) arm(parts_.options.request_timeout);
  if (parser_.awaits_continue() && !continued_) send_continue();
}

void HttpServerConnection::send_continue() {
  continued_ = true;
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  // Nothing else is on its way, so there is room; a client without it sends by itself later.
  (void)::send(accepted_.socket.descriptor(), kContinue.data(), kContinue.size(),
               MSG_NOSIGNAL | MSG_DONTWAIT);
}

void HttpServerConnection::begin_call() {
  framing_ = {.head_only = false,
              .keep_alive = parser_.keep_alive(),
              .minor_version = parser_.minor_version()};
  HttpReceived request = parser_.take();
  framing_.head_only = request.method == HttpMethod::kHead;
  continued_ = false;
  disarm();
  auto pass = parts_.calls.enter();
  if (!pass) {
    refuse({503, {StatusCode::kCancelled, "this server is stopping"}});
    return;
  }
  pass_ = std::make_shared<Gate::Pass>(std::move(*pass));
  context_ =
      RequestContext(TimePoint::max(), caller_).with_cancellation(std::make_shared<Cancellation>());
  const std::uint64_t call = ++call_;
  Completion<HttpAnswer> done(
      parts_.loop, [weak = weak_from_this(), pass = pass_, call](Result<HttpAnswer> answer) {
        if (const auto self = weak.lock()) self->on_answer(call, std::move(answer));
      });
  await(State::kHandling, EventLoop::kRead);
  const Status admitted = parts_.work.submit([&handler = parts_.handler,
                                              received = HttpCall{std::move(request), *context_},
                                              answer = std::move(done)]() mutable {
    handler.handle(std::move(received), std::move(answer));
  });
  if (admitted.ok()) return;
  ++call_;  // The answer of the call that was not admitted is ours.
  refuse({503, {StatusCode::kResourceExhausted, "too many requests wait; try again later"}});
}

// ---- Answers

void HttpServerConnection::refuse(HttpRefusal refusal) {
  // Where the request ends is not known, so nothing can follow it.
  framing_.keep_alive = false;
  begin_sending(parts_.options.error_page(refusal), framing_);
}

void HttpServerConnection::on_answer(std::uint64_t call, Result<HttpAnswer> answer) {
  if (call != call_ || state_ != State::kHandling) return;
  if (!answer) {
    const int status = http_status_of(answer.error().code());
    answer = parts_.options.error_page({status, answer.error()});
  }
  if (finishing_) framing_.keep_alive = false;
  begin_sending(std::move(*answer), framing_);
}

void HttpServerConnection::begin_sending(HttpAnswer answer, HttpFraming framing) {
  state_ = State::kSending;
  writer_.emplace(accepted_.socket.descriptor(), std::move(answer), framing,
                  system_clock().wall_now());
  arm(parts_.options.send_timeout);
  send_more();
}

void HttpServerConnection::send_more() {
  const HttpAnswerWriter::Outcome outcome = writer_->advance();
  if (writer_->progressed()) arm(parts_.options.send_timeout);
  switch (outcome) {
    case HttpAnswerWriter::Outcome::kDone:
      end_answer();
      break;
    case HttpAnswerWriter::Outcome::kBlocked:
      await(State::kSending, EventLoop::kWrite);
      break;
    case HttpAnswerWriter::Outcome::kWantsPiece:
      ask_for_piece();
      break;
    case HttpAnswerWriter::Outcome::kBroken:
      close();
      break;
  }
}

void HttpServerConnection::ask_for_piece() {
  disarm();
  const bool has_room = waiting_.size() < kWaitingBytesMax;
  await(State::kStreaming, has_room ? std::uint32_t{EventLoop::kRead} : 0);
  writer_->stream()->next(*context_,
                          Completion<Slice>(parts_.loop, [weak = weak_from_this(), pass = pass_,
                                                          call = call_](Result<Slice> piece) {
                            if (const auto self = weak.lock())
                              self->on_piece(call, std::move(piece));
                          }));
}

void HttpServerConnection::on_piece(std::uint64_t call, Result<Slice> piece) {
  if (call != call_ || state_ != State::kStreaming) return;
  if (!piece || !writer_->give(std::move(*piece))) {
    close();
    return;
  }
  state_ = State::kSending;
  arm(parts_.options.send_timeout);
  send_more();
}

void HttpServerConnection::end_answer() {
  const bool keep_alive = writer_->keep_alive() && !finishing_;
  writer_.reset();
  context_.reset();
  pass_.reset();
  framing_ = {};
  if (!keep_alive) {
    linger();
    return;
  }
  await(State::kReading, EventLoop::kRead);
  arm(parts_.options.idle_timeout);
  const std::string waiting = std::exchange(waiting_, {});
  if (!waiting.empty()) parse(as_bytes(waiting));
}

void HttpServerConnection::linger() {
  ::shutdown(accepted_.socket.descriptor(), SHUT_WR);
  await(State::kLingering, EventLoop::kRead);
  arm(kLingerTimeout);
}

}  // namespace millrace
