#include "platform/curl_connector.h"

#include <sys/socket.h>
#include <unistd.h>

#include <new>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

// What a handle needs besides libcurl's own state, kept under CURLOPT_PRIVATE.
struct Attempt {
  std::string host;
  CURLSH* pool = nullptr;
  char error[CURL_ERROR_SIZE] = {};
};

Attempt* attempt_of(CURL* easy) {
  Attempt* attempt = nullptr;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &attempt);
  return attempt;
}

Status failure_of(CURLcode code, const Attempt& attempt) {
  const std::string_view detail = attempt.error[0] != 0 ? attempt.error : curl_easy_strerror(code);
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
      return {StatusCode::kInvalidArgument,
              fmt::format("cannot trust the certificate of {}: {}; give the CA's certificate with "
                          "the ca_bundle parameter or AWS_CA_BUNDLE",
                          attempt.host, detail)};
    case CURLE_SSL_CONNECT_ERROR:
      if (detail.find("wrong version number") != std::string_view::npos) {
        return {StatusCode::kInvalidArgument,
                fmt::format("{} does not speak TLS: use http:// or its TLS port", attempt.host)};
      }
      return {StatusCode::kUnavailable,
              fmt::format("cannot connect to {}: {}", attempt.host, detail)};
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return {StatusCode::kInvalidArgument,
              fmt::format("bad address '{}': {}", attempt.host, detail)};
    case CURLE_OUT_OF_MEMORY:
      return {StatusCode::kResourceExhausted, std::string(detail)};
    default:
      return {StatusCode::kUnavailable,
              fmt::format("cannot connect to {}: {}", attempt.host, detail)};
  }
}

long milliseconds(Duration duration) {
  return static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

}  // namespace

CurlConnector::CurlConnector(EventLoop& loop, const CurlHttpClientOptions& options,
                             Connected connected)
    : loop_(loop), options_(options), connected_(std::move(connected)), multi_(curl_multi_init()) {
  if (multi_ == nullptr) throw std::runtime_error("libcurl cannot be initialised");
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
}

CurlConnector::~CurlConnector() {
  loop_.cancel_timer(timer_);
  curl_multi_cleanup(multi_);
}

CURL* CurlConnector::connect(const std::string& origin, const std::string& ca_bundle, bool tls) {
  CURLSH* pool = curl_share_init();
  CURL* easy = curl_easy_init();
  if (pool == nullptr || easy == nullptr) {
    curl_easy_cleanup(easy);
    curl_share_cleanup(pool);
    return nullptr;
  }
  auto* attempt = new Attempt{origin.substr(origin.find("://") + 3), pool};
  curl_share_setopt(pool, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT);
  curl_easy_setopt(easy, CURLOPT_SHARE, pool);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, attempt);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, attempt->error);
  curl_easy_setopt(easy, CURLOPT_URL, origin.c_str());
  curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  // We speak to the store itself, also where a proxy stands between: it has to tunnel.
  curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
  curl_easy_setopt(easy, CURLOPT_NOPROXY, options_.no_proxy.c_str());
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(options_.connect_timeout));
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, this);
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, this);
  if (tls) {
    const std::string& trusted = ca_bundle.empty() ? options_.ca_bundle : ca_bundle;
    curl_easy_setopt(easy, CURLOPT_CAINFO, trusted.c_str());
  }
  curl_multi_add_handle(multi_, easy);
  return easy;
}

void CurlConnector::close(CURL* easy) {
  Attempt* attempt = attempt_of(easy);
  curl_multi_remove_handle(multi_, easy);
  curl_easy_cleanup(easy);
  curl_share_cleanup(attempt->pool);
  delete attempt;
}

void CurlConnector::act(curl_socket_t socket, int events) {
  int running = 0;
  curl_multi_socket_action(multi_, socket, events, &running);
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* easy = message->easy_handle;
    const CURLcode code = message->data.result;
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (code == CURLE_OK) curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &fd);
    if (code == CURLE_OK && fd != CURL_SOCKET_BAD) {
      connected_(easy, fd);
    } else {
      connected_(easy, failure(failure_of(code, *attempt_of(easy))));
    }
  }
}

int CurlConnector::on_socket(CURL*, curl_socket_t fd, int what, void* self, void*) {
  auto& connector = *static_cast<CurlConnector*>(self);
  if (what == CURL_POLL_REMOVE) {
    connector.loop_.unwatch(fd);
    return 0;
  }
  std::uint32_t interest = 0;
  if (what & CURL_POLL_IN) interest |= EventLoop::kRead;
  if (what & CURL_POLL_OUT) interest |= EventLoop::kWrite;
  if (connector.loop_.watches(fd)) {
    connector.loop_.set_interest(fd, interest);
    return 0;
  }
  connector.loop_.watch(fd, interest, [&connector, fd](std::uint32_t ready) {
    int events = 0;
    if (ready & EventLoop::kRead) events |= CURL_CSELECT_IN;
    if (ready & EventLoop::kWrite) events |= CURL_CSELECT_OUT;
    connector.act(fd, events);
  });
  return 0;
}

int CurlConnector::on_timer(CURLM*, long timeout_ms, void* self) {
  auto& connector = *static_cast<CurlConnector*>(self);
  connector.loop_.cancel_timer(std::exchange(connector.timer_, 0));
  if (timeout_ms < 0) return 0;
  // Also for 0: libcurl must not be entered again from its own callback.
  connector.timer_ = connector.loop_.run_at(
      system_clock().now() + std::chrono::milliseconds(timeout_ms), [&connector] {
        connector.timer_ = 0;
        connector.act(CURL_SOCKET_TIMEOUT, 0);
      });
  return 0;
}

curl_socket_t CurlConnector::open_socket(void* self, curlsocktype, curl_sockaddr* address) {
  auto& connector = *static_cast<CurlConnector*>(self);
  const int fd = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (fd < 0) return CURL_SOCKET_BAD;
  connector.connections_opened_.fetch_add(1, std::memory_order_relaxed);
  return fd;
}

int CurlConnector::close_socket(void* self, curl_socket_t fd) {
  static_cast<CurlConnector*>(self)->loop_.unwatch(fd);
  return ::close(fd);
}

}  // namespace millrace
