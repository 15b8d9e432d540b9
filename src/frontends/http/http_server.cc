#include "frontends/http/http_server.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/completion.h"
#include "base/log.h"
#include "frontends/http/http_server_connection.h"

namespace millrace {
namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr Duration kAcceptPause = std::chrono::milliseconds(200);

// Tells one client too many, as far as that is possible without waiting for it.
void turn_away(const AcceptedSocket& accepted, const HttpServerOptions& options) {
  HttpAnswer answer =
      options.error_page({503,
                          {StatusCode::kResourceExhausted,
                           fmt::format("there are {} connections already; try again later",
                                       options.connections_max)}});
  HttpAnswerWriter writer(accepted.socket.descriptor(), std::move(answer),
                          {.head_only = false, .keep_alive = false, .minor_version = 1},
                          system_clock().wall_now());
  (void)writer.advance();
}

}  // namespace

HttpServer::HttpServer(EventLoop& loop, Executor& work, HttpHandler& handler,
                       HttpServerOptions options)
    : loop_(loop), work_(work), handler_(handler), options_(options) {}

HttpServer::~HttpServer() {
  stop(system_clock().now());
  join();
}

void HttpServer::run_on_loop(Task task) {
  Waiter<bool> done;
  loop_.resume([task = std::move(task), answer = done.completion()]() mutable {
    task();
    answer.complete(true);
  });
  (void)done.wait();
}

void HttpServer::listen(ListeningSocket socket) {
  run_on_loop([this, listener = std::make_unique<Listener>(std::move(socket))]() mutable {
    watch(*listener);
    listeners_.push_back(std::move(listener));
  });
}

void HttpServer::watch(Listener& listener) {
  loop_.watch(listener.socket.descriptor(), EventLoop::kRead,
              [this, &listener](std::uint32_t) { accept(listener); });
}

void HttpServer::accept(Listener& listener) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    auto accepted = listener.socket.accept();
    if (!accepted) {
      log_error("cannot accept connections", {{"error", accepted.error().to_string()}});
      pause(listener);
      return;
    }
    if (!*accepted) return;
    add(*std::move(*accepted));
  }
}

// Out of descriptors the listener stays readable, and the loop would spin.
void HttpServer::pause(Listener& listener) {
  loop_.unwatch(listener.socket.descriptor());
  listener.pause = loop_.run_at(system_clock().now() + kAcceptPause, [this, &listener] {
    listener.pause = 0;
    watch(listener);
  });
}

void HttpServer::add(AcceptedSocket accepted) {
  if (connections_.size() >= options_.connections_max) {
    turn_away(accepted, options_);
    return;
  }
  const auto connection = std::make_shared<HttpServerConnection>(
      HttpServerParts{
          .loop = loop_, .work = work_, .handler = handler_, .options = options_, .calls = calls_},
      std::move(accepted), [this](HttpServerConnection& closed) { remove(closed); });
  connections_.insert(connection);
  {
    MutexLock lock(mutex_);
    ++open_;
  }
  connection->start();
}

void HttpServer::remove(HttpServerConnection& connection) {
  connections_.erase(connection.shared_from_this());
  MutexLock lock(mutex_);
  --open_;
  changed_.notify_all();
}

std::size_t HttpServer::connections() const {
  MutexLock lock(mutex_);
  return open_;
}

void HttpServer::finish_all() {
  for (const auto& listener : listeners_) {
    loop_.cancel_timer(listener->pause);
    loop_.unwatch(listener->socket.descriptor());
  }
  listeners_.clear();
  // They leave the set as they end.
  const auto connections = connections_;
  for (const auto& connection : connections)
    connection->finish();
}

void HttpServer::close_all() {
  const auto connections = connections_;
  for (const auto& connection : connections)
    connection->close();
}

void HttpServer::stop(TimePoint deadline) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(stopped_, true)) return;
  }
  run_on_loop([this] { finish_all(); });
  {
    MutexLock lock(mutex_);
    while (open_ > 0 && changed_.wait_until(mutex_, deadline)) {
    }
  }
  run_on_loop([this] { close_all(); });
}

void HttpServer::join() { calls_.close(); }

}  // namespace millrace
