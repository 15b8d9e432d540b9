#pragma once

#include <cstdint>
#include <string>

#include "base/buffer_pool.h"
#include "base/limiter.h"
#include "platform/http_client.h"
#include "platform/http_response_parser.h"

namespace millrace {

// One request and its answer, from admission to completion. Made by the caller's thread, from then
// on touched by one loop's thread only.
class HttpExchange final : public HttpBodySink {
 public:
  HttpExchange(const RequestContext& context, HttpRequest request, Completion<HttpResponse> done,
               Limiter::Reservation slot);

  // Takes the URL apart and writes the head. kInvalidArgument for what cannot be sent: no http URL,
  // or a line break in a header.
  Status prepare(const std::string& user_agent);

  const RequestContext& context() const { return context_; }
  const HttpRequest& request() const { return request_; }
  // Where to connect: "https://host:port". Connections are shared by equal origins and trust.
  const std::string& origin() const { return origin_; }
  const std::string& head() const { return head_; }
  // True for methods that may be sent twice without harm.
  bool repeatable() const {
    return request_.method == HttpMethod::kGet || request_.method == HttpMethod::kHead;
  }
  // "GET at host:port", for messages.
  std::string describe() const;

  // The body's place in memory that is not filled yet, for a body of declared length.
  MutableByteView room();
  void filled(std::size_t bytes) { body_size_ += bytes; }

  Status on_head(const HttpResponse& head, const std::uint64_t* length) override;
  Status on_body(ByteView bytes) override;
  // Forgets what has arrived, for a second try on another connection.
  void restart();

  // The answer with its body.
  Result<HttpResponse> conclude(HttpResponse head);
  // Delivers it. The exchange is spent afterwards.
  void answer(Result<HttpResponse> result);

  // Kept by the loop.
  std::uint64_t id = 0;
  Cancellation::CallbackId cancel_subscription = 0;
  class HttpConnection* connection = nullptr;
  bool restarted = false;
  std::uint64_t bytes_moved = 0;  // Both ways.
  std::uint64_t bytes_at_last_tick = 0;
  Duration slow_for{0};

 private:
  Status allocate(std::size_t bytes, Buffer& into) const;

  const RequestContext context_;
  HttpRequest request_;
  Completion<HttpResponse> done_;
  Limiter::Reservation slot_;
  std::string origin_;
  std::string head_;

  bool good_ = false;  // A 2xx answer: its body is what was asked for.
  std::uint64_t limit_ = 0;
  Buffer body_;
  std::size_t body_size_ = 0;
};

}  // namespace millrace
