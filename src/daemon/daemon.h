#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/application.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "daemon/control_routes.h"
#include "daemon/front_end.h"
#include "daemon/gateway.h"
#include "daemon/store_watch.h"
#include "frontends/http/http_server.h"

namespace millrace {

struct DaemonOptions {
  // What to do about a store that is a directory and is not there.
  MissingRoot missing_store = MissingRoot::kRefuse;
  std::vector<std::unique_ptr<FrontEnd>> front_ends = {};
  // Somebody asks over the control interface that the daemon ends: whoever owns it calls stop().
  // Called on a worker's thread; must not block.
  std::function<void()> on_stop_request = [] {};
};

// `millrace serve`: the gateway, the front ends that show it, and the control interface on a Unix
// socket. Nothing of it depends on how the process is run.
//
// Lifecycle: serves from start() to stop(). Safe from any thread but for stop(), which has one
// caller.
class Daemon {
 public:
  // The application outlives it. kConflict names the process that has the cache, or the socket.
  static Result<std::unique_ptr<Daemon>> start(Application& application, DaemonOptions options);
  // Stops at once.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Takes nobody new, lets requests end until the deadline, then calls them off.
  void stop(TimePoint deadline);

  Gateway& gateway() { return *gateway_; }
  const ControlRoutes& routes() const { return routes_; }
  StoreWatch::State store_state() const { return store_watch_->state(); }
  // Of GET /v1/status.
  Json status();
  // Something was changed in the registry: it is asked again for what is shown of it. Returns for
  // how long clients on this machine may go on with what they were told.
  Duration ask_again();
  void request_stop() const { on_stop_request_(); }

 private:
  Daemon(Application& application, std::unique_ptr<Gateway> gateway, DaemonOptions options);
  Status start_front_ends();

  // Constant after the start.
  const std::unique_ptr<Gateway> gateway_;
  const WallTime started_;
  const std::function<void()> on_stop_request_;
  const Json settings_;  // What it serves with, as text, by name.
  ControlRoutes routes_;
  std::vector<std::unique_ptr<FrontEnd>> front_ends_;
  std::unique_ptr<StoreWatch> store_watch_;
  std::unique_ptr<HttpServer> server_;
  bool stopped_ = false;
};

}  // namespace millrace
