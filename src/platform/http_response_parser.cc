#include "platform/http_response_parser.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

constexpr int kInterimAnswersMax = 16;

Status malformed(std::string_view why) {
  return {StatusCode::kUnavailable, fmt::format("the answer is not HTTP: {}", why)};
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
      case State::kChunks:
        step = consume_chunks(rest);
        break;
      case State::kLength:
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
      return {StatusCode::kUnavailable, head_.empty()
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
  const HttpHead::Step step = head_.take(bytes);
  switch (step.outcome) {
    case HttpHead::Outcome::kBareFeed:
      return failure(malformed("its head has a bare line feed"));
    case HttpHead::Outcome::kTooLong:
      return failure(malformed("its head is longer than 64 KiB"));
    case HttpHead::Outcome::kMore:
      return step.taken;
    case HttpHead::Outcome::kWhole:
      break;
  }
  MR_RETURN_IF_ERROR(take_head());
  head_.clear();
  return step.taken;
}

Status HttpResponseParser::take_head() {
  response_.headers = {};
  bool first = true;
  while (const auto line = head_.next_line()) {
    MR_RETURN_IF_ERROR(first ? take_status_line(*line) : take_header_line(*line));
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
  const auto status = version ? parse_http_number(line.substr(9, 3)) : std::nullopt;
  if (!status || *status < 100 || *status > 599 || (line.size() > 12 && line[12] != ' ') ||
      has_http_line_breaker(line)) {
    return malformed("it does not begin with a status line");
  }
  if (*status == 101) return malformed("it switches to another protocol");
  minor_version_ = line[7] - '0';
  response_.status = static_cast<int>(*status);
  return {};
}

Status HttpResponseParser::take_header_line(std::string_view line) {
  std::optional<HttpHeader> header = parse_http_header(line);
  if (!header) return malformed("a header line is malformed");
  if (response_.headers.size() >= kHttpHeaderLinesMax) {
    return malformed(fmt::format("it has more than {} header lines", kHttpHeaderLinesMax));
  }
  response_.headers.add(std::move(header->name), std::move(header->value));
  return {};
}

Status HttpResponseParser::choose_body() {
  std::optional<std::uint64_t> length;
  bool chunked = false;
  bool closes = false;
  bool keeps = minor_version_ == 1;
  for (const HttpHeader& header : response_.headers.all()) {
    if (http_names_equal(header.name, "content-length")) {
      const auto value = parse_http_number(header.value);
      if (!value || (length && *length != *value)) return malformed("its length is malformed");
      length = value;
    } else if (http_names_equal(header.name, "transfer-encoding")) {
      if (!http_names_equal(header.value, "chunked") || chunked) {
        return malformed("its transfer encoding is not one that was asked for");
      }
      chunked = true;
    } else if (http_names_equal(header.name, "connection")) {
      closes = closes || http_list_has(header.value, "close");
      keeps = keeps || http_list_has(header.value, "keep-alive");
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
    state_ = State::kChunks;
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
  if (left_ == 0) state_ = State::kDone;
  return size;
}

Result<std::size_t> HttpResponseParser::consume_chunks(ByteView bytes) {
  const HttpChunks::Step step = chunks_.take(bytes);
  if (!step.malformed.empty()) return failure(malformed(step.malformed));
  if (!step.body.empty()) MR_RETURN_IF_ERROR(sink_->on_body(step.body));
  if (chunks_.done()) state_ = State::kDone;
  return step.taken;
}

}  // namespace millrace
