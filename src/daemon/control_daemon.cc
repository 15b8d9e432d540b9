#include <unistd.h>

#include "daemon/control_resources.h"
#include "daemon/daemon.h"
#include "objectstore/paused_call.h"

namespace millrace {
namespace {

// Ready once the cache is open and the store was asked: what is cached is served without its
// answer.
ControlAnswer readiness(Daemon& daemon) {
  const StoreWatch::State store = daemon.store_state();
  return json_control_answer({{"ready", store.asked}, {"store_answers", store.answers}},
                             store.asked ? 200 : 503);
}

ControlAnswer metrics_page(Daemon& daemon) {
  return {.text = daemon.gateway().metrics().render_prometheus() +
                  daemon.gateway().usage().render_prometheus(),
          .text_type = "text/plain; version=0.0.4"};
}

}  // namespace

void add_daemon_routes(ControlRoutes& routes, Daemon& daemon) {
  routes.add(HttpMethod::kGet, "/healthz",
             [](const ControlRequest&) -> Result<Json> { return Json{{"healthy", true}}; });
  routes.add_waiting(HttpMethod::kGet, "/readyz",
                     [&daemon](const ControlRequest&, Completion<ControlAnswer> done) {
                       done.complete(readiness(daemon));
                     });
  routes.add_waiting(HttpMethod::kGet, "/metrics",
                     [&daemon](const ControlRequest&, Completion<ControlAnswer> done) {
                       done.complete(metrics_page(daemon));
                     });
  routes.add(HttpMethod::kGet, "/v1/status",
             [&daemon](const ControlRequest&) -> Result<Json> { return daemon.status(); });
  routes.add_waiting(HttpMethod::kPost, "/v1/datasets/ask_again",
                     [&daemon](const ControlRequest& request, Completion<ControlAnswer> done) {
                       Gateway& gateway = daemon.gateway();
                       const Duration believed = daemon.ask_again();
                       pause_call(gateway.clock(), gateway.control(), request.context,
                                  gateway.clock().now() + believed,
                                  [done = std::move(done)](const Status&) mutable {
                                    done.complete(json_control_answer({{"asks_again", true}}));
                                  });
                     });
  routes.add(HttpMethod::kPost, "/v1/stop", [&daemon](const ControlRequest&) -> Result<Json> {
    daemon.request_stop();
    return Json{{"stopping", true}, {"pid", ::getpid()}};
  });
}

}  // namespace millrace
