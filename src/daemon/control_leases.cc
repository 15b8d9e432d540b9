#include <algorithm>

#include <fmt/format.h>

#include "app/times.h"
#include "daemon/control_resources.h"

namespace millrace {
namespace {

Result<Json> list_leases(Gateway& gateway) {
  Json leases = Json::array();
  for (const LeaseInfo& lease : gateway.cache().leases().list()) {
    leases.push_back({{"lease", lease.id.value()},
                      {"holder", lease.holder},
                      {"expires", format_time(lease.expires)},
                      {"bytes", lease.bytes}});
  }
  return Json{{"leases", std::move(leases)}};
}

Result<Json> release_lease(Gateway& gateway, const ControlRequest& request) {
  const LeaseId id(request.parameter("lease"));
  // Releasing what is not there succeeds, but who mistypes a name wants to know.
  const auto held = gateway.cache().leases().list();
  if (std::ranges::none_of(held, [&](const LeaseInfo& lease) { return lease.id == id; })) {
    return failure(StatusCode::kNotFound, fmt::format("there is no lease '{}'", id.value()));
  }
  MR_RETURN_IF_ERROR(gateway.cache().leases().release(request.context, id));
  return Json(nullptr);
}

}  // namespace

void add_lease_routes(ControlRoutes& routes, Gateway& gateway) {
  routes.add(HttpMethod::kGet, "/v1/leases",
             [&gateway](const ControlRequest&) { return list_leases(gateway); });
  routes.add(HttpMethod::kDelete, "/v1/leases/{lease}",
             [&gateway](const ControlRequest& request) { return release_lease(gateway, request); });
}

}  // namespace millrace
