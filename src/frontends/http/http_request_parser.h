#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "frontends/http/http_call.h"
#include "platform/http_framing.h"

namespace millrace {

struct HttpRequestLimits {
  std::size_t head_bytes_max = 32 * kKiB;
  std::size_t body_bytes_max = kMiB;
};

// Takes requests of HTTP/1.1 and 1.0 apart as they arrive, in pieces of any size (RFC 9112), one
// after the other. Strict, so that nobody in front of us sees other borders between requests than
// we do: a length beside chunks, a second length, any other encoding, folded headers, bare line
// feeds and a missing or second Host are refused.
//
// After a refusal it is of no more use, and neither is the connection. Thread-compatible.
class HttpRequestParser {
 public:
  explicit HttpRequestParser(HttpRequestLimits limits)
      : limits_(limits), head_(limits.head_bytes_max) {}

  // Takes bytes from the front, and returns how many belong to this request: all of them, unless
  // it ends among them.
  std::expected<std::size_t, HttpRefusal> consume(ByteView bytes);

  // Some of a request has come.
  bool started() const { return state_ != State::kHead || !head_.empty(); }
  bool done() const { return state_ == State::kDone; }
  // The head has come, and the client waits for a sign before it sends the body.
  bool awaits_continue() const { return expects_continue_ && in_body() && request_.body.empty(); }
  // Whether the connection can carry another request after this one.
  bool keep_alive() const { return keep_alive_; }
  // 0 for a client of HTTP/1.0, which knows no chunks.
  int minor_version() const { return minor_version_; }

  // The request, once done. The next one begins.
  HttpReceived take();

 private:
  enum class State : std::uint8_t { kHead, kLength, kChunks, kDone };
  using Refused = std::optional<HttpRefusal>;

  bool in_body() const { return state_ == State::kLength || state_ == State::kChunks; }
  Refused take_head();
  Refused take_request_line(std::string_view line);
  Refused take_target(std::string_view target);
  Refused take_version(std::string_view version);
  Refused choose_body();
  Refused take_framing(const HttpHeader& header);
  std::expected<std::size_t, HttpRefusal> consume_head(ByteView bytes);
  std::expected<std::size_t, HttpRefusal> consume_length(ByteView bytes);
  std::expected<std::size_t, HttpRefusal> consume_chunks(ByteView bytes);

  const HttpRequestLimits limits_;
  State state_ = State::kHead;
  HttpHead head_;
  HttpChunks chunks_;
  HttpReceived request_;
  std::uint64_t left_ = 0;
  int minor_version_ = 1;
  bool keep_alive_ = true;
  bool expects_continue_ = false;
  // What the framing headers said.
  std::optional<std::uint64_t> length_;
  bool chunked_ = false;
  int hosts_ = 0;
};

}  // namespace millrace
