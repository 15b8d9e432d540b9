#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "platform/http_client.h"
#include "platform/http_framing.h"

namespace millrace {

// Where the bytes of an answer's body go.
class HttpBodySink {
 public:
  virtual ~HttpBodySink() = default;

  // The head is complete. `length` is the body's, when the answer declares it. A failure refuses
  // the answer: nothing more is read of it.
  virtual Status on_head(const HttpResponse& head, const std::uint64_t* length) = 0;
  // The next bytes of the body.
  virtual Status on_body(ByteView bytes) = 0;
};

// Takes one HTTP/1.1 answer apart as it arrives, in pieces of any size (RFC 9112). Interim answers
// (1xx) are passed over. Strict where a lenient reading could mistake the bytes of one answer for
// the next: lengths that differ, a length beside chunks, folded headers and bare line feeds are
// refused.
//
// Limits: a head of 64 KiB and 256 lines, 16 interim answers, 256 lines of trailer. Failures are
// kUnavailable: the connection is of no more use, and another may do better. Thread-compatible.
class HttpResponseParser {
 public:
  // `head_only`: the answer to a HEAD, which declares a length and has no body.
  HttpResponseParser(HttpBodySink& sink, bool head_only) : sink_(&sink), head_only_(head_only) {}

  // Takes bytes from the front, and returns how many belong to this answer: all of them, unless it
  // ends among them.
  Result<std::size_t> consume(ByteView bytes);
  // The connection ended. Success when that ends the answer too.
  Status finish();

  bool done() const { return state_ == State::kDone; }
  bool head_done() const { return state_ != State::kHead; }
  // How many bytes of a body of declared length are still to come, so that they can be received
  // right into their place; 0 otherwise. take_direct() says that they were.
  std::uint64_t direct_bytes() const { return state_ == State::kLength ? left_ : 0; }
  void take_direct(std::size_t bytes);
  // Whether the connection can carry another request once this answer is done.
  bool keep_alive() const { return keep_alive_; }
  HttpResponse& response() { return response_; }

 private:
  enum class State : std::uint8_t {
    kHead,        // Collecting lines until the blank one.
    kLength,      // left_ bytes of body to come.
    kChunks,      // In a chunked body.
    kUntilClose,  // The body ends with the connection.
    kDone,
  };

  Result<std::size_t> consume_head(ByteView bytes);
  Result<std::size_t> consume_chunks(ByteView bytes);
  Result<std::size_t> consume_body(ByteView bytes);
  Status take_head();
  Status take_status_line(std::string_view line);
  Status take_header_line(std::string_view line);
  Status choose_body();

  HttpBodySink* sink_;
  const bool head_only_;
  State state_ = State::kHead;
  HttpResponse response_;
  HttpHead head_{64 * 1024};
  HttpChunks chunks_;
  std::uint64_t left_ = 0;
  int interim_answers_ = 0;
  int minor_version_ = 1;
  bool keep_alive_ = true;
};

}  // namespace millrace
