#include "platform/http_framing.h"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace millrace {
namespace {

constexpr std::size_t kChunkLineBytesMax = 1024;

// Whether a line feed at or after `from` has no carriage return before it.
bool has_bare_feed(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find('\n', from); at != std::string_view::npos;
       at = text.find('\n', at + 1)) {
    if (at == 0 || text[at - 1] != '\r') return true;
  }
  return false;
}

}  // namespace

bool is_http_token(std::string_view text) {
  const auto allowed = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > 0x20 && byte < 0x7f &&
           std::string_view("()<>@,;:\\\"/[]?={}").find(c) == std::string_view::npos;
  };
  return !text.empty() && std::ranges::all_of(text, allowed);
}

bool http_names_equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view trim_http(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && blank(text.back()))
    text.remove_suffix(1);
  return text;
}

bool http_list_has(std::string_view list, std::string_view option) {
  while (true) {
    const std::size_t comma = list.find(',');
    if (http_names_equal(trim_http(list.substr(0, comma)), option)) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

std::optional<std::uint64_t> parse_http_number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool has_http_line_breaker(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos;
}

std::optional<HttpHeader> parse_http_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_http_token(line.substr(0, colon))) {
    return std::nullopt;
  }
  const std::string_view value = trim_http(line.substr(colon + 1));
  if (has_http_line_breaker(value)) return std::nullopt;
  return HttpHeader{std::string(line.substr(0, colon)), std::string(value)};
}

HttpHead::Step HttpHead::take(ByteView bytes) {
  const std::size_t before = text_.size();
  const std::size_t room = bytes_max_ - before;
  text_.append(as_text(bytes.first(std::min(bytes.size(), room))));
  const std::size_t end = text_.find("\r\n\r\n", searched_);
  if (end == std::string::npos) {
    if (has_bare_feed(text_, searched_)) return {Outcome::kBareFeed, text_.size() - before};
    if (text_.size() == bytes_max_) return {Outcome::kTooLong, text_.size() - before};
    searched_ = text_.size() < 3 ? 0 : text_.size() - 3;
    return {Outcome::kMore, text_.size() - before};
  }
  text_.resize(end + 2);
  return {Outcome::kWhole, end + 4 - before};
}

std::optional<std::string_view> HttpHead::next_line() {
  const std::string_view rest = std::string_view(text_).substr(shown_);
  if (rest.empty()) return std::nullopt;
  const std::size_t end = rest.find("\r\n");
  shown_ += end + 2;
  return rest.substr(0, end);
}

void HttpHead::clear() {
  text_.clear();
  searched_ = 0;
  shown_ = 0;
}

HttpChunks::Step HttpChunks::take(ByteView bytes) {
  if (state_ == State::kChunk) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
    left_ -= size;
    if (left_ == 0) state_ = State::kEnd;
    return {.taken = size, .body = bytes.first(size), .malformed = {}};
  }
  const std::string_view text = as_text(bytes);
  const std::size_t feed = text.find('\n');
  const std::size_t taken = feed == std::string_view::npos ? text.size() : feed + 1;
  line_.append(text.substr(0, taken));
  Step step{.taken = taken, .body = {}, .malformed = {}};
  if (line_.size() > kChunkLineBytesMax) {
    step.malformed = "a line between chunks is too long";
  } else if (feed != std::string_view::npos) {
    const std::string line = std::exchange(line_, {});
    step.malformed = line.ends_with("\r\n")
                         ? take_line(std::string_view(line).substr(0, line.size() - 2))
                         : "a line between chunks is malformed";
  }
  return step;
}

std::string_view HttpChunks::take_line(std::string_view line) {
  switch (state_) {
    case State::kEnd:
      if (!line.empty()) return "a chunk is longer than it says";
      state_ = State::kSize;
      return {};
    case State::kTrailer:
      if (line.empty()) state_ = State::kDone;
      return ++trailer_lines_ > kHttpHeaderLinesMax ? "its trailer has too many lines" : "";
    default:
      break;
  }
  // Extensions after ';' are allowed and mean nothing.
  const auto size = parse_http_number(trim_http(line.substr(0, line.find(';'))), 16);
  if (!size || *size > std::numeric_limits<std::int64_t>::max()) {
    return "the size of a chunk is malformed";
  }
  left_ = *size;
  state_ = left_ == 0 ? State::kTrailer : State::kChunk;
  return {};
}

}  // namespace millrace
