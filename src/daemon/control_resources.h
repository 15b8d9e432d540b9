#pragma once

#include "daemon/control_routes.h"
#include "daemon/gateway.h"

namespace millrace {

class Daemon;

// One function per resource of the control interface, each in its own file. It adds the resource's
// routes; what they refer to outlives the server.

// /healthz, /readyz, /metrics, /v1/status, /v1/datasets/ask_again, /v1/stop
void add_daemon_routes(ControlRoutes& routes, Daemon& daemon);
// /v1/datasets
void add_dataset_routes(ControlRoutes& routes, Gateway& gateway);
// /v1/versions
void add_version_routes(ControlRoutes& routes, Gateway& gateway);
// /v1/runs
void add_run_routes(ControlRoutes& routes, Gateway& gateway);
// /v1/cache
void add_cache_routes(ControlRoutes& routes, Gateway& gateway);
// /v1/preloads
void add_preload_routes(ControlRoutes& routes, Gateway& gateway);
// /v1/usage
void add_usage_routes(ControlRoutes& routes, Gateway& gateway);
// /v1/leases
void add_lease_routes(ControlRoutes& routes, Gateway& gateway);

// Of GET /v1/cache, and a part of the status.
Json cache_document(Gateway& gateway);

}  // namespace millrace
