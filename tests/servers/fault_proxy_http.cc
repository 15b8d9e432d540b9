#include "tests/servers/fault_proxy_http.h"

#include <strings.h>

#include <algorithm>
#include <charconv>

namespace millrace::testing {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Calls visit(name, value) for each header until it returns true.
template <typename Visit>
void visit_headers(std::string_view head, Visit visit) {
  std::size_t begin = head.find("\r\n");
  while (begin != std::string_view::npos) {
    begin += 2;
    const std::size_t end = head.find("\r\n", begin);
    if (end == std::string_view::npos || end == begin) return;
    const std::string_view line = head.substr(begin, end - begin);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos &&
        visit(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)))) {
      return;
    }
    begin = end;
  }
}

}  // namespace

std::string read_head(BufferedSocket& socket) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  std::size_t searched = 0;
  for (;;) {
    const auto bytes = socket.buffered();
    const std::string_view text(bytes.data(), bytes.size());
    const std::size_t end = text.find(kEnd, searched);
    if (end != std::string_view::npos) {
      std::string head(text.substr(0, end + kEnd.size()));
      socket.consume(head.size());
      return head;
    }
    searched = text.size() < kEnd.size() ? 0 : text.size() - kEnd.size() + 1;
    if (!socket.fill()) return {};
  }
}

std::optional<ProxiedRequest> parse_request(std::string_view head) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last ||
      !line.substr(last + 1).starts_with("HTTP/1.")) {
    return std::nullopt;
  }
  ProxiedRequest request;
  request.method = line.substr(0, first);
  request.target = line.substr(first + 1, last - first - 1);
  visit_headers(head, [&](std::string_view name, std::string_view value) {
    request.headers.emplace_back(name, value);
    return false;
  });
  request.content_length = parse_number<std::uint64_t>(request.header("content-length"));
  request.has_range = !request.header("range").empty();
  return request;
}

int response_status(std::string_view head) {
  if (!head.starts_with("HTTP/1.") || head.size() < 12) return 0;
  return parse_number<int>(head.substr(9, 3)).value_or(0);
}

std::optional<std::string_view> find_header(std::string_view head, std::string_view name) {
  std::optional<std::string_view> found;
  visit_headers(head, [&](std::string_view key, std::string_view value) {
    if (same_word(key, name)) found = value;
    return found.has_value();
  });
  return found;
}

std::string with_header(std::string_view head, std::string_view name, std::string_view value) {
  std::string changed(head);
  if (const auto old = find_header(head, name)) {
    const auto offset = static_cast<std::size_t>(old->data() - head.data());
    changed.replace(offset, old->size(), value);
  }
  return changed;
}

bool wants_close(std::string_view head) {
  const auto connection = find_header(head, "connection");
  if (connection) return same_word(*connection, "close");
  return head.substr(0, head.find("\r\n")).find("HTTP/1.0") != std::string_view::npos;
}

std::uint64_t flip_offset(std::uint64_t sequence, std::uint64_t length) {
  return length == 0 ? 0 : (sequence + 1) * 0x9e3779b97f4a7c15 % length;
}

BodyReader BodyReader::of_headers(std::string_view head, State otherwise) {
  BodyReader reader;
  if (const auto coding = find_header(head, "transfer-encoding"); coding) {
    reader.chunked_ = true;
    reader.state_ = State::kChunkSize;
  } else if (const auto text = find_header(head, "content-length"); text) {
    const auto length = parse_number<std::uint64_t>(*text);
    reader.broken_ = !length.has_value();
    reader.length_ = length.value_or(0);
    reader.left_ = *reader.length_;
    reader.state_ = reader.left_ > 0 ? State::kLength : State::kDone;
  } else {
    reader.state_ = otherwise;
  }
  return reader;
}

BodyReader BodyReader::of_request(std::string_view head) { return of_headers(head, State::kDone); }

BodyReader BodyReader::of_response(std::string_view head, std::string_view method) {
  const int status = response_status(head);
  if (method == "HEAD" || status == 204 || status == 304) return {};
  return of_headers(head, State::kUntilClose);
}

BodyReader::Step BodyReader::next(BufferedSocket& socket, Piece* piece) {
  if (broken_) return Step::kBroken;
  if (state_ == State::kDone) return Step::kDone;
  const std::span<char> bytes = socket.buffered();
  if (bytes.empty()) return Step::kNeedInput;
  if (state_ == State::kUntilClose) {
    *piece = {.bytes = bytes, .payload = true};
    return Step::kPiece;
  }
  if (state_ == State::kLength || state_ == State::kChunkData) {
    const auto count = std::min<std::uint64_t>(left_, bytes.size());
    *piece = {.bytes = bytes.first(static_cast<std::size_t>(count)), .payload = true};
    return Step::kPiece;
  }
  const auto end = std::find(bytes.begin(), bytes.end(), '\n');
  if (end == bytes.end()) return Step::kNeedInput;
  *piece = {.bytes = bytes.first(static_cast<std::size_t>(end - bytes.begin()) + 1),
            .payload = false};
  return Step::kPiece;
}

std::uint64_t BodyReader::run_left() const {
  return state_ == State::kLength || state_ == State::kChunkData ? left_ : 0;
}

void BodyReader::skip(std::uint64_t count) {
  left_ -= count;
  if (left_ == 0) state_ = state_ == State::kLength ? State::kDone : State::kChunkEnd;
}

void BodyReader::consume(BufferedSocket& socket, std::size_t count) {
  if (state_ == State::kLength || state_ == State::kChunkData) {
    skip(count);
  } else if (state_ != State::kUntilClose) {
    after_line({socket.buffered().data(), count});
  }
  socket.consume(count);
}

void BodyReader::after_line(std::string_view line) {
  switch (state_) {
    case State::kChunkSize: {
      const std::string_view digits = trimmed(line.substr(0, line.find(';')));
      const auto size = parse_number<std::uint64_t>(digits, 16);
      broken_ = !size.has_value();
      left_ = size.value_or(0);
      state_ = left_ > 0 ? State::kChunkData : State::kTrailer;
      break;
    }
    case State::kChunkEnd:
      state_ = State::kChunkSize;
      break;
    default:  // kTrailer: an empty line ends the body.
      if (trimmed(line).empty()) state_ = State::kDone;
      break;
  }
}

}  // namespace millrace::testing
