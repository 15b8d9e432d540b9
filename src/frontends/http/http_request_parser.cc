#include "frontends/http/http_request_parser.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

HttpRefusal bad_request(std::string_view why) {
  return {400, {StatusCode::kInvalidArgument, fmt::format("the request is not HTTP: {}", why)}};
}

HttpRefusal too_large(std::size_t bytes_max) {
  return {413,
          {StatusCode::kInvalidArgument,
           fmt::format("the body of the request is longer than {} bytes", bytes_max)}};
}

std::optional<HttpMethod> method_of(std::string_view name) {
  constexpr std::array kMethods = {HttpMethod::kGet, HttpMethod::kHead, HttpMethod::kPut,
                                   HttpMethod::kPost, HttpMethod::kDelete};
  for (const HttpMethod method : kMethods) {
    if (http_method_name(method) == name) return method;
  }
  return std::nullopt;
}

}  // namespace

std::expected<std::size_t, HttpRefusal> HttpRequestParser::consume(ByteView bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && state_ != State::kDone) {
    const ByteView rest = bytes.subspan(taken);
    std::expected<std::size_t, HttpRefusal> step = 0;
    if (state_ == State::kHead) {
      step = consume_head(rest);
    } else if (state_ == State::kLength) {
      step = consume_length(rest);
    } else {
      step = consume_chunks(rest);
    }
    if (!step) return step;
    taken += *step;
  }
  return taken;
}

HttpReceived HttpRequestParser::take() {
  HttpReceived request = std::exchange(request_, {});
  state_ = State::kHead;
  head_.clear();
  chunks_ = {};
  left_ = 0;
  minor_version_ = 1;
  keep_alive_ = true;
  expects_continue_ = false;
  length_.reset();
  chunked_ = false;
  hosts_ = 0;
  return request;
}

std::expected<std::size_t, HttpRefusal> HttpRequestParser::consume_head(ByteView bytes) {
  const HttpHead::Step step = head_.take(bytes);
  switch (step.outcome) {
    case HttpHead::Outcome::kBareFeed:
      return std::unexpected(bad_request("its head has a bare line feed"));
    case HttpHead::Outcome::kTooLong:
      return std::unexpected(
          HttpRefusal{431,
                      {StatusCode::kInvalidArgument,
                       fmt::format("the head of the request is longer than {} bytes",
                                   limits_.head_bytes_max)}});
    case HttpHead::Outcome::kMore:
      return step.taken;
    case HttpHead::Outcome::kWhole:
      break;
  }
  if (Refused refused = take_head()) return std::unexpected(std::move(*refused));
  return step.taken;
}

HttpRequestParser::Refused HttpRequestParser::take_head() {
  bool first = true;
  while (const auto line = head_.next_line()) {
    if (first) {
      if (Refused refused = take_request_line(*line)) return refused;
      first = false;
      continue;
    }
    std::optional<HttpHeader> header = parse_http_header(*line);
    if (!header) return bad_request("a header line is malformed");
    if (request_.headers.size() >= kHttpHeaderLinesMax) {
      return HttpRefusal{
          431,
          {StatusCode::kInvalidArgument,
           fmt::format("the request has more than {} header lines", kHttpHeaderLinesMax)}};
    }
    request_.headers.add(std::move(header->name), std::move(header->value));
  }
  return choose_body();
}

HttpRequestParser::Refused HttpRequestParser::take_request_line(std::string_view line) {
  const std::size_t method_end = line.find(' ');
  const std::size_t target_end = line.rfind(' ');
  if (method_end == std::string_view::npos || method_end == target_end) {
    return bad_request("it does not begin with a method, a path and a version");
  }
  if (Refused refused = take_version(line.substr(target_end + 1))) return refused;
  const std::string_view name = line.substr(0, method_end);
  if (!is_http_token(name)) return bad_request("its method is malformed");
  const std::optional<HttpMethod> method = method_of(name);
  if (!method) {
    return HttpRefusal{501,
                       {StatusCode::kUnsupported, fmt::format("there is no method {} here", name)}};
  }
  request_.method = *method;
  return take_target(line.substr(method_end + 1, target_end - method_end - 1));
}

HttpRequestParser::Refused HttpRequestParser::take_version(std::string_view version) {
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    if (version.size() == 8 && version.starts_with("HTTP/")) {
      return HttpRefusal{505, {StatusCode::kUnsupported, "this server speaks HTTP/1.1"}};
    }
    return bad_request("its first line does not end with a version");
  }
  minor_version_ = version.back() - '0';
  return std::nullopt;
}

HttpRequestParser::Refused HttpRequestParser::take_target(std::string_view target) {
  const auto visible = [](char c) { return c > 0x20 && c < 0x7f && c != '#'; };
  if (!target.starts_with('/') || !std::ranges::all_of(target, visible)) {
    return bad_request("it does not name a path, percent-encoded, from '/'");
  }
  const std::size_t mark = target.find('?');
  request_.path = target.substr(0, mark);
  request_.query = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  return std::nullopt;
}

HttpRequestParser::Refused HttpRequestParser::take_framing(const HttpHeader& header) {
  if (http_names_equal(header.name, "content-length")) {
    // Also a repetition of the same: whoever repeats it may elsewhere say something else.
    if (length_) return bad_request("it has two lengths");
    length_ = parse_http_number(header.value);
    if (!length_) return bad_request("its length is malformed");
  } else if (http_names_equal(header.name, "transfer-encoding")) {
    if (chunked_ || !http_names_equal(header.value, "chunked")) {
      return HttpRefusal{501, {StatusCode::kUnsupported, "the only encoding here is 'chunked'"}};
    }
    if (minor_version_ == 0) return bad_request("there are no chunks in HTTP/1.0");
    chunked_ = true;
  } else if (http_names_equal(header.name, "connection")) {
    if (http_list_has(header.value, "close")) keep_alive_ = false;
  } else if (http_names_equal(header.name, "host")) {
    ++hosts_;
  } else if (http_names_equal(header.name, "expect")) {
    if (!http_names_equal(header.value, "100-continue")) {
      return HttpRefusal{417, {StatusCode::kUnsupported, "nothing but 100-continue is expected"}};
    }
    expects_continue_ = minor_version_ == 1;
  }
  return std::nullopt;
}

HttpRequestParser::Refused HttpRequestParser::choose_body() {
  // A client of HTTP/1.0 has to ask for it.
  keep_alive_ =
      minor_version_ == 1 || http_list_has(request_.headers.get("connection"), "keep-alive");
  for (const HttpHeader& header : request_.headers.all()) {
    if (Refused refused = take_framing(header)) return refused;
  }
  if (chunked_ && length_) return bad_request("it has both a length and chunks");
  if (hosts_ > 1 || (hosts_ == 0 && minor_version_ == 1)) {
    return bad_request("it has no Host, or two");
  }
  if (length_.value_or(0) > limits_.body_bytes_max) return too_large(limits_.body_bytes_max);
  left_ = length_.value_or(0);
  if (chunked_) {
    state_ = State::kChunks;
  } else {
    state_ = left_ == 0 ? State::kDone : State::kLength;
  }
  return std::nullopt;
}

std::expected<std::size_t, HttpRefusal> HttpRequestParser::consume_length(ByteView bytes) {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  request_.body += as_text(bytes.first(size));
  left_ -= size;
  if (left_ == 0) state_ = State::kDone;
  return size;
}

std::expected<std::size_t, HttpRefusal> HttpRequestParser::consume_chunks(ByteView bytes) {
  const HttpChunks::Step step = chunks_.take(bytes);
  if (!step.malformed.empty()) return std::unexpected(bad_request(step.malformed));
  if (step.body.size() > limits_.body_bytes_max - request_.body.size()) {
    return std::unexpected(too_large(limits_.body_bytes_max));
  }
  request_.body += as_text(step.body);
  if (chunks_.done()) state_ = State::kDone;
  return step.taken;
}

}  // namespace millrace
