#include "platform/http_response_parser.h"

#include <strings.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

constexpr std::size_t kHeadBytesMax = 64 * 1024;
constexpr std::size_t kHeaderLinesMax = 256;  // Of a head, and of a trailer.
constexpr int kInterimAnswersMax = 16;
constexpr std::size_t kChunkLineBytesMax = 1024;

Status malformed(std::string_view why) {
  return {StatusCode::kUnavailable, fmt::format("the answer is not HTTP: {}", why)};
}

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && blank(text.back()))
    text.remove_suffix(1);
  return text;
}

bool is_token(std::string_view text) {
  const auto allowed = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > 0x20 && byte < 0x7f &&
           std::string_view("()<>@,;:\\\"/[]?={}").find(c) == std::string_view::npos;
  };
  return !text.empty() && std::ranges::all_of(text, allowed);
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// Whether a line feed at or after `from` has no carriage return before it.
bool has_bare_feed(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find('\n', from); at != std::string_view::npos;
       at = text.find('\n', at + 1)) {
    if (at == 0 || text[at - 1] != '\r') return true;
  }
  return false;
}

bool has_line_breaker(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos;
}

// Whether a list such as "close, upgrade" names the option.
bool lists_option(std::string_view list, std::string_view option) {
  while (true) {
    const std::size_t comma = list.find(',');
    if (equals_ignoring_case(trim(list.substr(0, comma)), option)) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

std::optional<std::uint64_t> parse_number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<std::size_t> HttpResponseParser::consume(ByteView bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && state_ != State::kDone) {
    const ByteView rest = bytes.subspan(taken);
    Result<std::size_t> step = 0;
    switch (state_) {
      case State::kHead:
        step = consume_head(rest);
        break;
      case State::kChunkSize:
      case State::kChunkEnd:
      case State::kTrailer:
        step = consume_line(rest);
        break;
      case State::kLength:
      case State::kChunk:
      case State::kUntilClose:
        step = consume_body(rest);
        break;
      case State::kDone:
        break;
    }
    if (!step) return step;
    taken += *step;
  }
  return taken;
}

Status HttpResponseParser::finish() {
  switch (state_) {
    case State::kDone:
      return {};
    case State::kUntilClose:
      state_ = State::kDone;
      return {};
    case State::kHead:
      return {StatusCode::kUnavailable, line_.empty()
                                            ? "the connection was closed without an answer"
                                            : "the answer was cut short in its head"};
    default:
      return {StatusCode::kUnavailable, "the answer was cut short"};
  }
}

void HttpResponseParser::take_direct(std::size_t bytes) {
  assert(bytes <= direct_bytes() && state_ == State::kLength);
  left_ -= bytes;
  if (left_ == 0) state_ = State::kDone;
}

Result<std::size_t> HttpResponseParser::consume_head(ByteView bytes) {
  const std::size_t before = line_.size();
  const std::size_t room = kHeadBytesMax - before;
  line_.append(as_text(bytes.first(std::min(bytes.size(), room))));
  const std::size_t end = line_.find("\r\n\r\n", searched_);
  if (end == std::string::npos) {
    if (has_bare_feed(line_, searched_)) return failure(malformed("its head has a bare line feed"));
    if (line_.size() == kHeadBytesMax) return failure(malformed("its head is longer than 64 KiB"));
    searched_ = line_.size() < 3 ? 0 : line_.size() - 3;
    return line_.size() - before;
  }
  line_.resize(end + 2);
  const std::size_t taken = end + 4 - before;
  MR_RETURN_IF_ERROR(take_head());
  line_.clear();
  searched_ = 0;
  return taken;
}

Status HttpResponseParser::take_head() {
  response_.headers = {};
  std::string_view rest = line_;
  bool first = true;
  while (!rest.empty()) {
    const std::size_t end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    MR_RETURN_IF_ERROR(first ? take_status_line(line) : take_header_line(line));
    first = false;
  }
  if (response_.status < 200) {  // An interim answer: the real one follows.
    if (++interim_answers_ > kInterimAnswersMax) {
      return malformed(fmt::format("more than {} interim answers precede it", kInterimAnswersMax));
    }
    return {};
  }
  return choose_body();
}

Status HttpResponseParser::take_status_line(std::string_view line) {
  const bool version = line.starts_with("HTTP/1.0 ") || line.starts_with("HTTP/1.1 ");
  const auto status = version ? parse_number(line.substr(9, 3), 10) : std::nullopt;
  if (!status || *status < 100 || *status > 599 || (line.size() > 12 && line[12] != ' ') ||
      has_line_breaker(line)) {
    return malformed("it does not begin with a status line");
  }
  if (*status == 101) return malformed("it switches to another protocol");
  minor_version_ = line[7] - '0';
  response_.status = static_cast<int>(*status);
  return {};
}

Status HttpResponseParser::take_header_line(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return malformed("a header line is malformed");
  }
  const std::string_view value = trim(line.substr(colon + 1));
  if (has_line_breaker(value)) return malformed("a header's value holds a control character");
  if (response_.headers.size() >= kHeaderLinesMax) {
    return malformed(fmt::format("it has more than {} header lines", kHeaderLinesMax));
  }
  response_.headers.add(std::string(line.substr(0, colon)), std::string(value));
  return {};
}

Status HttpResponseParser::choose_body() {
  std::optional<std::uint64_t> length;
  bool chunked = false;
  bool closes = false;
  bool keeps = minor_version_ == 1;
  for (const HttpHeader& header : response_.headers.all()) {
    if (equals_ignoring_case(header.name, "content-length")) {
      const auto value = parse_number(header.value, 10);
      if (!value || (length && *length != *value)) return malformed("its length is malformed");
      length = value;
    } else if (equals_ignoring_case(header.name, "transfer-encoding")) {
      if (!equals_ignoring_case(header.value, "chunked") || chunked) {
        return malformed("its transfer encoding is not one that was asked for");
      }
      chunked = true;
    } else if (equals_ignoring_case(header.name, "connection")) {
      closes = closes || lists_option(header.value, "close");
      keeps = keeps || lists_option(header.value, "keep-alive");
    }
  }
  if (chunked && length) return malformed("it has both a length and chunks");
  // HTTP/1.0 has no chunks: whoever sends them there is not to be trusted with a second answer.
  if (chunked && minor_version_ == 0) closes = true;
  keep_alive_ = keeps && !closes;
  const bool bodiless = head_only_ || response_.status == 204 || response_.status == 304;
  if (bodiless) {
    length = 0;
    chunked = false;
  }
  MR_RETURN_IF_ERROR(sink_->on_head(response_, length ? &*length : nullptr));
  if (chunked) {
    state_ = State::kChunkSize;
  } else if (length) {
    left_ = *length;
    state_ = left_ == 0 ? State::kDone : State::kLength;
  } else {
    keep_alive_ = false;
    state_ = State::kUntilClose;
  }
  return {};
}

Result<std::size_t> HttpResponseParser::consume_body(ByteView bytes) {
  const std::size_t size =
      state_ == State::kUntilClose
          ? bytes.size()
          : static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  MR_RETURN_IF_ERROR(sink_->on_body(bytes.first(size)));
  if (state_ == State::kUntilClose) return size;
  left_ -= size;
  if (left_ == 0) state_ = state_ == State::kLength ? State::kDone : State::kChunkEnd;
  return size;
}

Result<std::size_t> HttpResponseParser::consume_line(ByteView bytes) {
  const std::string_view text = as_text(bytes);
  const std::size_t feed = text.find('\n');
  const std::size_t taken = feed == std::string_view::npos ? text.size() : feed + 1;
  line_.append(text.substr(0, taken));
  if (line_.size() > kChunkLineBytesMax)
    return failure(malformed("a line between chunks is too long"));
  if (feed == std::string_view::npos) return taken;
  if (!line_.ends_with("\r\n")) return failure(malformed("a line between chunks is malformed"));
  const std::string line = std::exchange(line_, {});
  MR_RETURN_IF_ERROR(take_line(std::string_view(line).substr(0, line.size() - 2)));
  return taken;
}

Status HttpResponseParser::take_line(std::string_view line) {
  switch (state_) {
    case State::kChunkEnd:
      if (!line.empty()) return malformed("a chunk is longer than it says");
      state_ = State::kChunkSize;
      return {};
    case State::kTrailer:
      if (line.empty()) state_ = State::kDone;
      if (++trailer_lines_ > kHeaderLinesMax) {
        return malformed(fmt::format("its trailer has more than {} lines", kHeaderLinesMax));
      }
      return {};
    default:
      break;
  }
  // Extensions after ';' are allowed and mean nothing.
  const auto size = parse_number(trim(line.substr(0, line.find(';'))), 16);
  if (!size || *size > std::numeric_limits<std::int64_t>::max()) {
    return malformed("the size of a chunk is malformed");
  }
  left_ = *size;
  state_ = left_ == 0 ? State::kTrailer : State::kChunk;
  return {};
}

}  // namespace millrace
