#include "platform/http_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"

namespace millrace {
namespace {

// Error bodies are read for their text, whatever the caller wants the data for.
constexpr std::uint64_t kErrorBodyBytesMax = 64 * kKiB;
// First guess for a body of unknown length.
constexpr std::size_t kUnknownBodyBytes = 16 * kKiB;

// Nothing in a head may end a line or the head: that would let a name from outside write headers.
bool fits_a_line(std::string_view text) {
  return std::ranges::none_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

}  // namespace

HttpExchange::HttpExchange(const RequestContext& context, HttpRequest request,
                           Completion<HttpResponse> done, Limiter::Reservation slot)
    : context_(context),
      request_(std::move(request)),
      done_(std::move(done)),
      slot_(std::move(slot)) {}

Status HttpExchange::prepare(const std::string& user_agent) {
  const std::string_view url = request_.url;
  const std::size_t scheme = url.find("://");
  const std::size_t start = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::size_t end = std::min(url.find_first_of("/?#", start), url.size());
  const std::string_view host = url.substr(start, end - start);
  const bool known = url.starts_with("http://") || url.starts_with("https://");
  if (!known || host.empty() || host.find('@') != std::string_view::npos || !fits_a_line(url) ||
      url.find(' ') != std::string_view::npos) {
    return {StatusCode::kInvalidArgument,
            fmt::format("'{}' is not an address that HTTP can reach", url.substr(0, end))};
  }
  origin_ = url.substr(0, end);
  std::string_view target = url.substr(end);
  target = target.substr(0, target.find('#'));

  head_.reserve(1024);
  head_.append(http_method_name(request_.method)).append(" ");
  if (!target.starts_with('/')) head_.append("/");
  head_.append(target).append(" HTTP/1.1\r\nhost: ").append(host);
  head_.append("\r\nuser-agent: ").append(user_agent).append("\r\naccept: */*\r\n");
  for (const HttpHeader& header : request_.headers) {
    if (!fits_a_line(header.name) || !fits_a_line(header.value)) {
      return {StatusCode::kInvalidArgument,
              fmt::format("the value of the header '{}' holds a control character", header.name)};
    }
    head_.append(header.name).append(": ").append(header.value).append("\r\n");
  }
  if (request_.method == HttpMethod::kPut || request_.method == HttpMethod::kPost) {
    head_.append(fmt::format("content-length: {}\r\n", request_.body.size()));
  }
  head_.append("\r\n");
  return {};
}

std::string HttpExchange::describe() const {
  const std::size_t scheme = origin_.find("://");
  return fmt::format("{} at {}", http_method_name(request_.method),
                     scheme == std::string::npos ? origin_ : origin_.substr(scheme + 3));
}

Status HttpExchange::allocate(std::size_t bytes, Buffer& into) const {
  if (request_.pool == nullptr || !good_) {
    into = Buffer::allocate(bytes);
    return {};
  }
  MR_ASSIGN_OR_RETURN(into, request_.pool->try_allocate(bytes));
  return {};
}

Status HttpExchange::on_head(const HttpResponse& head, const std::uint64_t* length) {
  good_ = head.status >= 200 && head.status < 300;
  limit_ = good_ ? request_.response_bytes_max : kErrorBodyBytesMax;
  if (length != nullptr && *length > limit_) {
    return {StatusCode::kInternal,
            fmt::format("{} answered {} with {}, more than the {} that fit the request", describe(),
                        head.status, format_size(*length), format_size(limit_))};
  }
  const std::uint64_t capacity =
      length != nullptr ? *length : std::min<std::uint64_t>(kUnknownBodyBytes, limit_);
  return allocate(static_cast<std::size_t>(capacity), body_);
}

MutableByteView HttpExchange::room() { return body_.bytes().subspan(body_size_); }

Status HttpExchange::on_body(ByteView bytes) {
  const std::size_t needed = body_size_ + bytes.size();
  if (needed > body_.size()) {
    if (needed > limit_) {
      return {StatusCode::kInternal, fmt::format("{} sent more than the {} that fit the request",
                                                 describe(), format_size(limit_))};
    }
    Buffer larger;
    const std::uint64_t twice = std::min<std::uint64_t>(limit_, 2 * body_.size());
    MR_RETURN_IF_ERROR(allocate(std::max<std::size_t>(needed, twice), larger));
    std::memcpy(larger.data(), body_.data(), body_size_);
    body_ = std::move(larger);
  }
  std::memcpy(body_.data() + body_size_, bytes.data(), bytes.size());
  body_size_ = needed;
  return {};
}

void HttpExchange::restart() {
  restarted = true;
  body_ = {};
  body_size_ = 0;
}

Result<HttpResponse> HttpExchange::conclude(HttpResponse head) {
  body_.truncate(body_size_);
  head.body = std::move(body_).freeze();
  return head;
}

void HttpExchange::answer(Result<HttpResponse> result) {
  // The slot is free before the caller knows, so that it can send the next request at once.
  slot_ = {};
  done_.complete(std::move(result));
}

}  // namespace millrace
