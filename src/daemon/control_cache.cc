#include "daemon/control_resources.h"

namespace millrace {

Json cache_document(Gateway& gateway) {
  const CacheUsage usage = gateway.cache().usage();
  return {{"directory", gateway.directory()}, {"used_bytes", usage.used_bytes},
          {"limit_bytes", usage.limit_bytes}, {"leased_bytes", usage.leased_bytes},
          {"counted", usage.scanned},         {"encrypted", gateway.cache_is_encrypted()}};
}

void add_cache_routes(ControlRoutes& routes, Gateway& gateway) {
  routes.add(HttpMethod::kGet, "/v1/cache",
             [&gateway](const ControlRequest&) -> Result<Json> { return cache_document(gateway); });
}

}  // namespace millrace
