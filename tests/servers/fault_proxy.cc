#include "tests/servers/fault_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <list>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "tests/servers/fault_proxy_connection.h"
#include "tests/servers/fault_proxy_ledger.h"

namespace millrace::testing {
namespace {

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

Upstream parse_endpoint(const std::string& endpoint) {
  constexpr std::string_view kScheme = "http://";
  const std::size_t colon = endpoint.rfind(':');
  if (!endpoint.starts_with(kScheme) || colon < kScheme.size()) {
    throw std::invalid_argument(
        fmt::format("{}: expected http://ADDRESS:PORT as the server behind the proxy", endpoint));
  }
  return {.host = endpoint.substr(kScheme.size(), colon - kScheme.size()),
          .port = static_cast<std::uint16_t>(std::stoul(endpoint.substr(colon + 1)))};
}

int listen_on(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) throw_errno("fault proxy: socket");
  const int on = 1;
  (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd, 1024) != 0) {
    const int error = errno;
    ::close(fd);
    errno = error;
    throw_errno(fmt::format("fault proxy: cannot listen on 127.0.0.1:{}", port));
  }
  return fd;
}

std::uint16_t bound_port(int fd) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw_errno("fault proxy: getsockname");
  }
  return ntohs(address.sin_port);
}

}  // namespace

// Accepts connections on a thread of its own, which also joins the threads of ended ones.
class FaultProxy::Listener {
 public:
  Listener(Upstream upstream, const ProxySettings& settings, std::uint16_t port)
      : ledger_(settings),
        upstream_(std::move(upstream)),
        listen_fd_(listen_on(port)),
        port_(bound_port(listen_fd_)),
        stop_fd_(eventfd(0, EFD_CLOEXEC)),
        acceptor_([this] { accept_all(); }) {}

  ~Listener() {
    const std::uint64_t one = 1;
    // Never read again: every wait on stop_fd_ ends from now on.
    (void)!::write(stop_fd_, &one, sizeof one);
    acceptor_.join();
    {
      const std::lock_guard lock(mutex_);
      for (Session& session : sessions_)
        session.connection.abort();
    }
    // No lock: the acceptor, the only one who changes the list, is gone.
    for (Session& session : sessions_)
      session.thread.join();
    ::close(listen_fd_);
    ::close(stop_fd_);
  }

  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void reset_connections() {
    const std::lock_guard lock(mutex_);
    for (Session& session : sessions_)
      session.connection.abort_with_reset();
  }

  std::uint16_t port() const { return port_; }
  ProxyLedger& ledger() { return ledger_; }

 private:
  struct Session {
    Session(int fd, const Upstream& upstream, ProxyLedger& ledger, int stop_fd)
        : connection(fd, upstream, ledger, stop_fd) {}
    ProxyConnection connection;
    std::atomic<bool> ended = false;
    std::thread thread;
  };

  void accept_all() {
    for (;;) {
      std::array<pollfd, 2> events{{{.fd = listen_fd_, .events = POLLIN, .revents = 0},
                                    {.fd = stop_fd_, .events = POLLIN, .revents = 0}}};
      if (::poll(events.data(), events.size(), -1) < 0) continue;
      if (events[1].revents != 0) return;
      const int fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) take(fd);
      join_ended();
    }
  }

  void take(int fd) {
    if (!ledger_.connection_opened()) {
      BufferedSocket refused;
      refused.adopt(fd);
      refused.reset();
      return;
    }
    const std::lock_guard lock(mutex_);
    Session& session = sessions_.emplace_back(fd, upstream_, ledger_, stop_fd_);
    session.thread = std::thread([this, &session] {
      session.connection.run();
      ledger_.connection_closed();
      session.ended = true;
    });
  }

  void join_ended() {
    const std::lock_guard lock(mutex_);
    std::erase_if(sessions_, [](Session& session) {
      if (!session.ended) return false;
      session.thread.join();
      return true;
    });
  }

  ProxyLedger ledger_;
  const Upstream upstream_;
  const int listen_fd_;
  const std::uint16_t port_;
  const int stop_fd_;
  std::mutex mutex_;
  std::list<Session> sessions_;  // Guarded by mutex_ while the acceptor runs.
  std::thread acceptor_;         // Last: it uses all of the above.
};

FaultProxy::FaultProxy(std::string upstream_host, std::uint16_t upstream_port,
                       ProxySettings settings, std::uint16_t listen_port)
    : listener_(std::make_unique<Listener>(
          Upstream{.host = std::move(upstream_host), .port = upstream_port}, settings,
          listen_port)) {}

FaultProxy::FaultProxy(const std::string& upstream_endpoint, ProxySettings settings)
    : listener_(std::make_unique<Listener>(parse_endpoint(upstream_endpoint), settings, 0)) {}

FaultProxy::~FaultProxy() = default;

std::uint16_t FaultProxy::port() const { return listener_->port(); }

std::string FaultProxy::endpoint() const { return fmt::format("http://127.0.0.1:{}", port()); }

void FaultProxy::set_policy(FaultPolicy policy) {
  listener_->ledger().set_policy(std::move(policy));
}

void FaultProxy::set_settings(const ProxySettings& settings) {
  listener_->ledger().set_settings(settings);
}

void FaultProxy::reset_connections() { listener_->reset_connections(); }

ProxyStats FaultProxy::stats() const { return listener_->ledger().stats(); }

void FaultProxy::reset_stats() { listener_->ledger().reset_stats(); }

std::vector<LoggedRequest> FaultProxy::requests() const { return listener_->ledger().requests(); }

}  // namespace millrace::testing
