#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "frontends/http/http_call.h"
#include "frontends/http/http_request_parser.h"
#include "platform/event_loop.h"
#include "platform/listening_socket.h"

namespace millrace {

class HttpServerConnection;

struct HttpServerOptions {
  HttpRequestLimits limits = {};
  std::size_t connections_max = 512;                    // Whoever comes then is told so, with 503.
  Duration idle_timeout = std::chrono::seconds(75);     // Between two requests.
  Duration request_timeout = std::chrono::seconds(30);  // From a request's first byte to its last.
  Duration send_timeout = std::chrono::seconds(30);     // Without the client taking anything.
  // How a failure looks to the clients of this server.
  HttpAnswer (*error_page)(const HttpRefusal&) = json_error_answer;
};

// HTTP/1.1 over sockets: frames requests, has them answered by a handler on the `work` executor,
// and sends the answers. All its own work is done on the loop.
//
// Lifecycle: serves from listen() until stop(). Loop, executor and handler outlive it; it must not
// be destroyed on either of them. Safe from any thread.
class HttpServer {
 public:
  HttpServer(EventLoop& loop, Executor& work, HttpHandler& handler, HttpServerOptions options);
  // Stops at once, and joins.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Serves whoever connects there, besides others. Not after stop().
  void listen(ListeningSocket socket);
  // Stops listening, ends connections that rest, and lets calls under way end until the deadline;
  // then they are called off, and their clients gone.
  void stop(TimePoint deadline);
  // After stop(): waits until no handler owes an answer any more.
  void join();

  std::size_t connections() const;

 private:
  struct Listener {
    ListeningSocket socket;
    EventLoop::TimerId pause = 0;
  };

  void watch(Listener& listener);
  void accept(Listener& listener);
  void pause(Listener& listener);
  void add(AcceptedSocket accepted);
  void remove(HttpServerConnection& connection);
  void finish_all();
  void close_all();
  void run_on_loop(Task task);

  EventLoop& loop_;
  Executor& work_;
  HttpHandler& handler_;
  const HttpServerOptions options_;
  Gate calls_;

  // Touched by the loop's thread only.
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::unordered_set<std::shared_ptr<HttpServerConnection>> connections_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::size_t open_ MR_GUARDED_BY(mutex_) = 0;
  bool stopped_ MR_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
