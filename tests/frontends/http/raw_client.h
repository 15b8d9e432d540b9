#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "platform/http_response_parser.h"
#include "platform/listening_socket.h"

namespace millrace {

// Says exactly what a test wants said, and hears exactly what is answered. Waits are bounded, so
// that a server that does not answer fails a test and does not hang it.
class RawClient {
 public:
  explicit RawClient(const std::string& path) {
    auto connected = connect_unix_socket(path);
    EXPECT_TRUE(connected) << (connected ? "" : connected.error().to_string());
    if (connected) socket_ = std::move(*connected);
  }

  // False when the server has closed the connection.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_.descriptor(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  struct Answer {
    int status = 0;
    HttpHeaders headers;
    std::string body;
    bool keep_alive = false;
  };
  // The next answer; status 0 when the connection ends before, or nothing comes.
  Answer receive(bool head_only = false) {
    Sink sink;
    HttpResponseParser parser(sink, head_only);
    while (!parser.done()) {
      if (buffered_.empty() && !fill()) {
        if (!parser.finish().ok()) return {};
        break;
      }
      const auto taken = parser.consume(as_bytes(buffered_));
      if (!taken) {
        ADD_FAILURE() << taken.error().to_string() << "\n" << buffered_;
        return {};
      }
      buffered_.erase(0, *taken);
    }
    return {parser.response().status, parser.response().headers, sink.body, parser.keep_alive()};
  }
  Answer ask(std::string_view text, bool head_only = false) {
    send(text);
    return receive(head_only);
  }
  Answer get(std::string_view path) {
    return ask("GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n\r\n");
  }

  // What was sent that is not HTTP's last word yet, as "HTTP/1.1 100 Continue".
  std::string receive_some() {
    if (buffered_.empty()) fill();
    return std::exchange(buffered_, {});
  }
  // True when the server ends the connection, with nothing more said.
  bool ended() { return buffered_.empty() && !fill() && !timed_out_; }
  void close() { socket_.close(); }
  int descriptor() const { return socket_.descriptor(); }

 private:
  struct Sink final : HttpBodySink {
    Status on_head(const HttpResponse&, const std::uint64_t*) override { return {}; }
    Status on_body(ByteView bytes) override {
      body += as_text(bytes);
      return {};
    }
    std::string body;
  };

  bool fill() {
    pollfd entry{.fd = socket_.descriptor(), .events = POLLIN, .revents = 0};
    timed_out_ = ::poll(&entry, 1, 30'000) == 0;
    if (timed_out_) {
      ADD_FAILURE() << "the server says nothing";
      return false;
    }
    std::array<char, 65536> buffer;
    const ssize_t got = ::recv(socket_.descriptor(), buffer.data(), buffer.size(), 0);
    if (got <= 0) return false;
    buffered_.append(buffer.data(), static_cast<std::size_t>(got));
    return true;
  }

  File socket_;
  std::string buffered_;
  bool timed_out_ = false;
};

}  // namespace millrace
