#include "cli/control_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/status_names.h"
#include "objectstore/s3/uri.h"
#include "platform/http_response_parser.h"
#include "platform/listening_socket.h"

namespace millrace::cli {
namespace {

constexpr std::uint64_t kAnswerBytesMax = 256 * kMiB;
constexpr std::string_view kNoDaemon = "no daemon runs at ";

class AnswerText final : public HttpBodySink {
 public:
  Status on_head(const HttpResponse&, const std::uint64_t*) override { return {}; }
  Status on_body(ByteView bytes) override {
    if (text.size() + bytes.size() > kAnswerBytesMax) {
      return {StatusCode::kInternal, "the daemon's answer is longer than 256 MiB"};
    }
    text += as_text(bytes);
    return {};
  }
  std::string text;
};

// One exchange over a connected socket.
class ControlExchange {
 public:
  ControlExchange(const RequestContext& context, Clock& clock, int interrupt_fd, const File& socket)
      : context_(context), clock_(clock), interrupt_fd_(interrupt_fd), socket_(socket) {}

  Status send(std::string_view text) {
    while (!text.empty()) {
      MR_RETURN_IF_ERROR(wait(POLLOUT));
      const ssize_t sent =
          ::send(socket_.descriptor(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) {
        text.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno == EPIPE || errno == ECONNRESET) {
        return {};  // It may have said why before it went.
      } else if (errno != EINTR && errno != EAGAIN) {
        return broken();
      }
    }
    return {};
  }

  Status receive(HttpResponseParser& parser) {
    std::array<std::byte, 65536> buffer;
    while (!parser.done()) {
      MR_RETURN_IF_ERROR(wait(POLLIN));
      const ssize_t got = ::recv(socket_.descriptor(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got < 0) return broken();
      if (got == 0) return parser.finish().with_context("the daemon went away");
      MR_ASSIGN_OR_RETURN([[maybe_unused]] const std::size_t taken,
                          parser.consume(ByteView(buffer).first(static_cast<std::size_t>(got))));
    }
    return {};
  }

 private:
  static Status broken() {
    return {StatusCode::kUnavailable,
            fmt::format("the daemon went away: {}", std::strerror(errno))};
  }

  Status wait(short events) {
    std::array<pollfd, 2> entries = {
        {{socket_.descriptor(), events, 0}, {interrupt_fd_, POLLIN, 0}}};
    while (true) {
      MR_RETURN_IF_ERROR(context_.check(clock_));
      int timeout_ms = -1;
      if (context_.has_deadline()) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(context_.deadline() - clock_.now());
        timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
      }
      if (::poll(entries.data(), entries.size(), timeout_ms) <= 0) continue;
      if (entries[1].revents != 0) return {StatusCode::kCancelled, "interrupted"};
      if (entries[0].revents != 0) return {};
    }
  }

  const RequestContext& context_;
  Clock& clock_;
  const int interrupt_fd_;
  const File& socket_;
};

Result<Json> document_of(int status, const std::string& text) {
  if (text.empty() && status < 300) return Json(nullptr);
  Json document = Json::parse(text, nullptr, false);
  if (status < 300 && !document.is_discarded()) return document;
  const auto error = document.is_object() ? document.find("error") : document.end();
  if (error != document.end() && error->is_object()) {
    const auto code = parse_status_code(error->value("code", ""));
    return failure(code.value_or(StatusCode::kInternal), error->value("message", "it failed"));
  }
  // Answers that say no without a failure, as of a daemon that is not ready.
  if (document.is_object() && status == 503) return document;
  return failure(StatusCode::kInternal, fmt::format("the daemon answers with status {}", status));
}

}  // namespace

Result<Json> ControlClient::send(const RequestContext& context, HttpMethod method,
                                 const std::string& path, const Json& body) {
  const std::string& address = session_.settings().socket;
  const auto socket = connect_unix_socket(address);
  if (!socket) {
    if (socket.error().code() != StatusCode::kNotFound) return failure(socket.error());
    return failure(StatusCode::kNotFound,
                   fmt::format("{}'{}': 'millrace serve' starts one", kNoDaemon, address));
  }
  const std::string text = body.is_null() ? "" : json_text(body);
  ControlExchange exchange(context, session_.clock(), session_.interrupt().fd(), *socket);
  MR_RETURN_IF_ERROR(exchange.send(fmt::format(
      "{} {} HTTP/1.1\r\nHost: millrace\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
      http_method_name(method), path, text.size(), text)));
  AnswerText answer;
  HttpResponseParser parser(answer, false);
  MR_RETURN_IF_ERROR(exchange.receive(parser));
  return document_of(parser.response().status, answer.text);
}

Result<Json> ControlClient::get(const std::string& path) {
  return send(session_.request(), HttpMethod::kGet, path);
}

bool ControlClient::is_no_daemon(const Status& status) {
  return status.code() == StatusCode::kNotFound && status.message().starts_with(kNoDaemon);
}

std::string ControlClient::component(std::string_view text) {
  return s3::encode_uri_component(text);
}

}  // namespace millrace::cli
