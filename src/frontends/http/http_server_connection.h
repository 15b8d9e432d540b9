#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/cancellation.h"
#include "base/executor.h"
#include "base/gate.h"
#include "frontends/http/http_answer_writer.h"
#include "frontends/http/http_call.h"
#include "frontends/http/http_request_parser.h"
#include "frontends/http/http_server.h"
#include "platform/event_loop.h"
#include "platform/listening_socket.h"

namespace millrace {

// What the connections of a server share. Outlives them.
struct HttpServerParts {
  EventLoop& loop;
  Executor& work;
  HttpHandler& handler;
  const HttpServerOptions& options;
  Gate& calls;  // Those under way.
};

// One client. Requests are answered in order, one at a time: what it sends meanwhile waits, in a
// bounded buffer and then in the kernel.
//
// Touched by the loop's thread only; answers come there too. `closed` is called once, at the end.
class HttpServerConnection : public std::enable_shared_from_this<HttpServerConnection> {
 public:
  using Closed = std::function<void(HttpServerConnection&)>;

  HttpServerConnection(const HttpServerParts& parts, AcceptedSocket accepted, Closed closed);
  ~HttpServerConnection();

  void start();
  // Ends when the call under way is answered; at once when there is none.
  void finish();
  // Calls off what is under way, and ends.
  void close();

 private:
  enum class State : std::uint8_t {
    kReading,    // Until a request is whole.
    kHandling,   // Until the handler answers.
    kSending,    // Until the socket takes more of the answer.
    kStreaming,  // Until the body's next piece is there.
    kLingering,  // The last answer is sent: what still arrives is dropped, so that closing does not
                 // take the answer away from the client.
    kClosed,
  };

  void on_ready(std::uint32_t ready);
  void receive();
  void take_input(ByteView bytes);
  void parse(ByteView bytes);
  void send_continue();
  void begin_call();
  void on_answer(std::uint64_t call, Result<HttpAnswer> answer);
  void refuse(HttpRefusal refusal);
  void begin_sending(HttpAnswer answer, HttpFraming framing);
  void send_more();
  void ask_for_piece();
  void on_piece(std::uint64_t call, Result<Slice> piece);
  void end_answer();
  void linger();
  void await(State state, std::uint32_t interest);
  void arm(Duration timeout);
  void disarm();
  void on_timeout();

  const HttpServerParts parts_;
  const AcceptedSocket accepted_;
  const std::shared_ptr<const Caller> caller_;
  const Closed closed_;

  State state_ = State::kReading;
  bool finishing_ = false;
  bool continued_ = false;  // The client was told to send the body.
  HttpRequestParser parser_;
  std::string waiting_;  // What came after the request that is being answered.
  EventLoop::TimerId timer_ = 0;

  // Of the call under way.
  std::uint64_t call_ = 0;
  HttpFraming framing_;
  std::shared_ptr<Gate::Pass> pass_;
  std::optional<RequestContext> context_;
  std::optional<HttpAnswerWriter> writer_;
};

}  // namespace millrace
