#include "app/times.h"
#include "daemon/control_body.h"
#include "daemon/control_resources.h"

namespace millrace {
namespace {

Json cached_version_document(const CachedVersion& cached) {
  return {{"version", cached.ref.text()},
          {"total_bytes", cached.total_bytes},
          {"cached_bytes", cached.cached_bytes},
          {"leased_until",
           cached.leased_until ? Json(format_time(*cached.leased_until)) : Json(nullptr)}};
}

Result<ControlAnswer> list_cached(Gateway& gateway, const ControlRequest& request) {
  MR_ASSIGN_OR_RETURN(const std::vector<CachedVersion> cached,
                      gateway.cached_versions().list(request.context));
  Json versions = Json::array();
  for (const CachedVersion& version : cached)
    versions.push_back(cached_version_document(version));
  return json_control_answer({{"versions", std::move(versions)}});
}

Result<ControlAnswer> drop_cached(Gateway& gateway, const ControlRequest& request) {
  MR_ASSIGN_OR_RETURN(const VersionRef ref, VersionRef::parse(request.parameter("name") + "@" +
                                                              request.parameter("version")));
  MR_ASSIGN_OR_RETURN(const DroppedVersion dropped,
                      gateway.cached_versions().drop(request.context, ref));
  return json_control_answer(
      {{"dropped_bytes", dropped.bytes}, {"busy_objects", dropped.busy_objects}});
}

// Of one version, or of all that is cached.
Result<ControlAnswer> verify_cached(Gateway& gateway, const ControlRequest& request) {
  ControlBody body(request.body);
  const std::optional<std::string> version = body.text("version");
  MR_RETURN_IF_ERROR(body.status());
  CheckReport report;
  if (version) {
    MR_ASSIGN_OR_RETURN(const VersionRef ref, VersionRef::parse(*version));
    MR_ASSIGN_OR_RETURN(report, gateway.cached_versions().verify(request.context, ref));
  } else {
    MR_ASSIGN_OR_RETURN(report,
                        gateway.cache().scrub(request.context, {.bytes_per_second_max = 0}));
  }
  return json_control_answer(
      {{"objects", report.objects}, {"bytes", report.bytes}, {"bad_units", report.bad_units}});
}

// Looks at every object of versions, which may take longer than other requests.
using LongHandler = Result<ControlAnswer> (*)(Gateway&, const ControlRequest&);

void add_long(ControlRoutes& routes, Gateway& gateway, HttpMethod method, std::string_view pattern,
              LongHandler handler) {
  routes.add_waiting(
      method, pattern, [&gateway, handler](ControlRequest request, Completion<ControlAnswer> done) {
        gateway.long_requests().resume(
            [&gateway, handler, request = std::move(request), done = std::move(done)]() mutable {
              done.complete(handler(gateway, request));
            });
      });
}

}  // namespace

Json cache_document(Gateway& gateway) {
  const CacheUsage usage = gateway.cache().usage();
  return {{"directory", gateway.directory()}, {"used_bytes", usage.used_bytes},
          {"limit_bytes", usage.limit_bytes}, {"leased_bytes", usage.leased_bytes},
          {"counted", usage.scanned},         {"encrypted", gateway.cache_is_encrypted()}};
}

void add_cache_routes(ControlRoutes& routes, Gateway& gateway) {
  routes.add(HttpMethod::kGet, "/v1/cache",
             [&gateway](const ControlRequest&) -> Result<Json> { return cache_document(gateway); });
  add_long(routes, gateway, HttpMethod::kGet, "/v1/cache/versions", list_cached);
  add_long(routes, gateway, HttpMethod::kDelete, "/v1/cache/versions/{name}/{version}",
           drop_cached);
  add_long(routes, gateway, HttpMethod::kPost, "/v1/cache/verify", verify_cached);
}

}  // namespace millrace
