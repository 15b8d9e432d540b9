#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "platform/http_client.h"

namespace millrace {

// What requests and answers of HTTP/1.1 (RFC 9112) have in common, for the parser of each. Strict
// where a lenient reading could mistake the bytes of one message for the next.

inline constexpr std::size_t kHttpHeaderLinesMax = 256;  // Of a head, and of a trailer.

bool is_http_token(std::string_view text);
bool http_names_equal(std::string_view a, std::string_view b);
// Without the blanks around it.
std::string_view trim_http(std::string_view text);
// Whether a list such as "close, upgrade" names the option.
bool http_list_has(std::string_view list, std::string_view option);
// All of `text`, which holds digits only.
std::optional<std::uint64_t> parse_http_number(std::string_view text, int base = 10);
// True for what could be taken for the end of a line, or of a string.
bool has_http_line_breaker(std::string_view text);
// "Name: value". Nothing when it is malformed; a folded line is.
std::optional<HttpHeader> parse_http_header(std::string_view line);

// Collects the lines of a head until the blank one, from pieces of any size.
class HttpHead {
 public:
  explicit HttpHead(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  enum class Outcome : std::uint8_t { kMore, kWhole, kBareFeed, kTooLong };
  struct Step {
    Outcome outcome = Outcome::kMore;
    std::size_t taken = 0;  // Of the bytes, from the front.
  };
  Step take(ByteView bytes);

  // Once whole: the next line, without its end; nothing after the last.
  std::optional<std::string_view> next_line();
  // Nothing was taken yet.
  bool empty() const { return text_.empty(); }
  void clear();

 private:
  const std::size_t bytes_max_;
  std::string text_;
  std::size_t searched_ = 0;
  std::size_t shown_ = 0;
};

// Takes a chunked body apart as it arrives. Extensions and trailers are passed over.
class HttpChunks {
 public:
  struct Step {
    std::size_t taken = 0;       // Of the bytes, from the front.
    ByteView body;               // What of them belongs to the body.
    std::string_view malformed;  // Not empty: why this is no chunked body. Ends it.
  };
  // One step: call it again with the rest, until done().
  Step take(ByteView bytes);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State : std::uint8_t {
    kSize,     // In a line with the size of the next chunk.
    kChunk,    // left_ bytes of the chunk to come.
    kEnd,      // The line end after a chunk.
    kTrailer,  // Lines after the last chunk, until the blank one.
    kDone,
  };

  // Why the line is malformed; empty when it is not.
  std::string_view take_line(std::string_view line);

  State state_ = State::kSize;
  std::string line_;
  std::uint64_t left_ = 0;
  std::size_t trailer_lines_ = 0;
};

}  // namespace millrace
