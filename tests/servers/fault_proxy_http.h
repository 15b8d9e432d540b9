#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tests/servers/fault_proxy_policy.h"
#include "tests/servers/fault_proxy_socket.h"

namespace millrace::testing {

// A head (start line and headers with the empty line that ends them) is kept as the text that came,
// so that what passes unchanged is unchanged to the byte.

// Reads a head. Empty at the end of the stream, on error, or when none ends within the buffer.
std::string read_head(BufferedSocket& socket);
// Fills in everything but `sequence`; nothing when this is no HTTP/1.x request.
std::optional<ProxiedRequest> parse_request(std::string_view head);
int response_status(std::string_view head);  // 0 when this is no HTTP/1.x response.
// The value under a name (any case) with surrounding blanks removed, or nothing.
std::optional<std::string_view> find_header(std::string_view head, std::string_view name);
// The same head with another value under a name that it has.
std::string with_header(std::string_view head, std::string_view name, std::string_view value);
bool wants_close(std::string_view head);

// Which byte of a body to damage: any will do; this one varies from request to request and is the
// same in every run. 0 for an empty body.
std::uint64_t flip_offset(std::uint64_t sequence, std::uint64_t length);

// Cuts a body out of a stream by its framing. A piece is a run of raw bytes in the socket's buffer:
// payload, or framing (chunk sizes, trailers) that must be passed on whole.
class BodyReader {
 public:
  enum class Step { kPiece, kNeedInput, kDone, kBroken };
  struct Piece {
    std::span<char> bytes;
    bool payload = true;
  };

  static BodyReader of_request(std::string_view head);
  static BodyReader of_response(std::string_view head, std::string_view method);

  // Finds the next piece among the buffered bytes. On kNeedInput the caller fills the socket.
  Step next(BufferedSocket& socket, Piece* piece);
  // Takes bytes off the front of the piece: any number of payload, all of framing.
  void consume(BufferedSocket& socket, std::size_t count);
  // Payload bytes of the current run that are still to come, buffered ones included.
  std::uint64_t run_left() const;
  // Tells that this many bytes of the run went past the buffer.
  void skip(std::uint64_t count);
  // For a body that ends with the connection: tells that it has.
  bool ends_with_connection() const { return state_ == State::kUntilClose; }

  bool empty() const { return state_ == State::kDone; }  // Before the first next(): no body.
  bool chunked() const { return chunked_; }
  // The length of the payload, where the head tells it.
  std::optional<std::uint64_t> length() const { return length_; }

 private:
  enum class State { kLength, kUntilClose, kChunkSize, kChunkData, kChunkEnd, kTrailer, kDone };

  static BodyReader of_headers(std::string_view head, State otherwise);
  void after_line(std::string_view line);

  State state_ = State::kDone;
  bool chunked_ = false;
  bool broken_ = false;
  std::uint64_t left_ = 0;  // Of the body in kLength, of the chunk in kChunkData.
  std::optional<std::uint64_t> length_;
};

}  // namespace millrace::testing
