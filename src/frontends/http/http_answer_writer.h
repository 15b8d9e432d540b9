#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "frontends/http/http_call.h"

namespace millrace {

// How an answer is framed, which its request decides.
struct HttpFraming {
  bool head_only = false;  // The answer to a HEAD.
  bool keep_alive = true;  // Otherwise the answer says that the connection ends.
  int minor_version = 1;   // Of the client.
};

// Puts one answer onto a socket that does not block, as fast as the client takes it. The body is
// not copied: memory goes by sendmsg, files by sendfile.
//
// Touched by the loop's thread only.
class HttpAnswerWriter {
 public:
  HttpAnswerWriter(int socket, HttpAnswer answer, HttpFraming framing, WallTime now);

  enum class Outcome : std::uint8_t {
    kDone,
    kBlocked,     // Until the socket is writable.
    kWantsPiece,  // Of the stream: give() one.
    kBroken,      // The client is gone, or the body is not what it said.
  };
  Outcome advance();
  // Some of it was taken since this was last asked.
  bool progressed() { return std::exchange(progressed_, false); }

  // The stream to ask for the next piece; null for other bodies.
  HttpBodyStream* stream() const { return stream_.get(); }
  // The next piece; an empty one is the end. False when it does not fit the length that was said.
  bool give(Slice piece);
  // False when only the end of the connection can end the body.
  bool keep_alive() const { return framing_.keep_alive; }

 private:
  void write_head(const HttpAnswer& answer, WallTime now);
  Outcome send_memory();
  Outcome send_file();

  const int socket_;
  HttpFraming framing_;
  std::string head_;  // Of the answer, or of a chunk with the end of the one before.
  std::size_t head_sent_ = 0;
  Slice memory_;
  HttpFileBody file_;
  std::shared_ptr<HttpBodyStream> stream_;
  // Of a stream that said its length.
  std::optional<std::uint64_t> stream_left_;
  bool chunked_ = false;
  bool stream_begun_ = false;
  bool progressed_ = false;
};

}  // namespace millrace
