#include "tests/servers/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "tests/servers/http_session.h"

namespace millrace::testing {
namespace {

std::shared_ptr<SSL_CTX> make_tls(const TlsIdentity& identity) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  const auto open = [](const std::string& pem) {
    return std::unique_ptr<BIO, decltype(&BIO_free)>(
        BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  };
  X509* certificate =
      PEM_read_bio_X509(open(identity.certificate_pem).get(), nullptr, nullptr, nullptr);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(open(identity.key_pem).get(), nullptr, nullptr, nullptr);
  const bool ok = context && certificate && key &&
                  SSL_CTX_use_certificate(context.get(), certificate) == 1 &&
                  SSL_CTX_use_PrivateKey(context.get(), key) == 1;
  X509_free(certificate);
  EVP_PKEY_free(key);
  if (!ok) throw std::runtime_error("test HTTP server: the TLS identity is not usable");
  return context;
}

int listen_on_loopback(uint16_t& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || ::bind(fd, generic, size) != 0 || ::listen(fd, 1024) != 0 ||
      ::getsockname(fd, generic, &size) != 0) {
    if (fd >= 0) ::close(fd);
    throw std::runtime_error("test HTTP server: cannot listen on 127.0.0.1");
  }
  port = ntohs(address.sin_port);
  return fd;
}

// SSL_write knows no MSG_NOSIGNAL, so a peer that left would end the test program.
void block_sigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

struct HttpServer::Connection {
  uint64_t id = 0;
  int fd = -1;            // Guarded by mutex_; -1 once closed.
  bool finished = false;  // Guarded by mutex_; the thread is about to end.
  std::thread thread;
};

HttpServer::HttpServer(Handler handler, HttpServerOptions options)
    : handler_(std::move(handler)), options_(std::move(options)) {
  if (options_.tls) tls_ = make_tls(*options_.tls);
  listener_ = listen_on_loopback(port_);
  wake_ = ::eventfd(0, EFD_CLOEXEC);
  acceptor_ = std::thread([this] { accept_loop(); });
}

HttpServer::~HttpServer() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    stop_changed_.notify_all();
  }
  ::eventfd_write(wake_, 1);
  acceptor_.join();
  close_connections();
  // Nobody adds to the list any more, so it can be walked without the lock.
  for (Connection& connection : connections_) {
    connection.thread.join();
  }
  ::close(listener_);
  ::close(wake_);
}

std::string HttpServer::url() const {
  return fmt::format("{}://127.0.0.1:{}", tls_ ? "https" : "http", port_);
}

void HttpServer::close_connections() {
  std::lock_guard lock(mutex_);
  for (Connection& connection : connections_) {
    if (connection.fd >= 0) ::shutdown(connection.fd, SHUT_RDWR);
  }
}

bool HttpServer::pause(std::chrono::nanoseconds duration) {
  std::unique_lock lock(mutex_);
  return !stop_changed_.wait_for(lock, duration, [this] { return stopping_; });
}

void HttpServer::reap_finished() {
  std::list<Connection> finished;
  {
    std::lock_guard lock(mutex_);
    for (auto it = connections_.begin(); it != connections_.end();) {
      const auto next = std::next(it);
      if (it->finished) finished.splice(finished.end(), connections_, it);
      it = next;
    }
  }
  for (Connection& connection : finished) {
    connection.thread.join();
  }
}

void HttpServer::accept_loop() {
  while (true) {
    pollfd waits[2] = {{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
    ::poll(waits, 2, -1);
    if (waits[1].revents != 0) return;
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      // Out of descriptors, most likely: give the connections time to end.
      if (errno != EAGAIN && errno != EINTR) pause(std::chrono::milliseconds(10));
      continue;
    }
    reap_finished();
    if (open_.load() >= options_.connections_max) {
      ::close(fd);
      continue;
    }
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ++open_;
    std::lock_guard lock(mutex_);
    Connection& connection = connections_.emplace_back();
    connection.id = ++accepted_;
    connection.fd = fd;
    connection.thread = std::thread([this, &connection, fd] { serve(connection, fd); });
  }
}

void HttpServer::serve(Connection& connection, int fd) {
  block_sigpipe();
  auto ending = HttpSession::Ending::kKeepOpen;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls(tls_ ? SSL_new(tls_.get()) : nullptr, SSL_free);
  if (tls) {
    SSL_set_fd(tls.get(), fd);
    if (SSL_accept(tls.get()) != 1) ending = HttpSession::Ending::kClose;
  }
  HttpSession session(HttpStream(fd, tls.get()), options_,
                      [this](std::chrono::nanoseconds duration) { return pause(duration); });
  while (ending == HttpSession::Ending::kKeepOpen) {
    std::optional<HttpRequest> request = session.read_request();
    if (!request) break;
    request->connection_id = connection.id;
    HttpResponse response;
    try {
      response = handler_(*request);
    } catch (const std::exception& error) {
      response.status = 500;
      response.body = fmt::format("the test's handler threw: {}\n", error.what());
    }
    ending = session.write_response(*request, response);
  }
  if (ending == HttpSession::Ending::kReset) {
    const linger at_once{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  ERR_clear_error();
  --open_;
  std::lock_guard lock(mutex_);
  ::close(fd);
  connection.fd = -1;
  connection.finished = true;
}

}  // namespace millrace::testing
