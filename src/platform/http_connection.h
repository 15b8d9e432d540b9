#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/file.h"
#include "platform/http_exchange.h"

namespace millrace {

// One connection that libcurl made (name look-up, TCP, proxy, TLS) and over which we speak HTTP/1.1
// ourselves. libcurl's own HTTP costs three times the processor time of ours per small request,
// copies every body once more, and repeats requests unseen when a kept connection turns out to be
// dead.
//
// Touched by one loop's thread only; the loop owns it and the curl handle.
class HttpConnection {
 public:
  enum class Outcome : std::uint8_t {
    kWaiting,  // For the socket.
    kDone,     // The answer is complete; see reusable().
    kFailed,   // See failure().
  };

  HttpConnection(CURL* easy, std::string pool_key) : easy_(easy), pool_key_(std::move(pool_key)) {}

  CURL* easy() const { return easy_; }
  // Which requests may use it.
  const std::string& pool_key() const { return pool_key_; }
  int fd() const { return socket_.descriptor(); }
  bool connected() const { return socket_.is_open(); }
  // Takes a descriptor of its own for libcurl's socket: the number of a descriptor that libcurl
  // closed would soon be another connection's, and its answers ours.
  Status set_connected(int fd, bool tls);

  // Starts an exchange and sends what the socket takes.
  Outcome begin(HttpExchange& exchange);
  // Goes on after the socket became ready.
  Outcome advance();
  // Whether it waits to send, beside to receive.
  bool wants_write() const;
  // Whether any byte of the current answer has arrived.
  bool answered() const { return answered_; }
  bool reusable() const { return reusable_; }
  const Status& failure() const { return failure_; }
  HttpResponse& response() { return parser_->response(); }

  // Kept by the loop.
  HttpExchange* exchange = nullptr;
  bool used_before = false;
  TimePoint idle_since{};

 private:
  struct Moved {
    std::size_t bytes = 0;
    bool blocked = false;
    bool ended = false;
    bool broken = false;
  };

  Moved send(ByteView first, ByteView second);
  Moved receive(MutableByteView into);
  // Lets the socket count as readable only when that much has arrived, or all that there will be.
  void wake_at(std::uint64_t expected);
  void send_pending();
  Outcome receive_available();
  Outcome fail(Status status);
  Outcome end_of_input(bool broken);

  CURL* const easy_;
  const std::string pool_key_;
  File socket_;
  bool tls_ = false;
  int low_water_ = 1;

  std::optional<HttpResponseParser> parser_;
  std::size_t sent_ = 0;
  bool send_broken_ = false;
  bool answered_ = false;
  bool reusable_ = false;
  Status failure_;
  std::string error_;  // The system's or libcurl's words for what broke.
};

}  // namespace millrace
