#include <algorithm>

#include <fmt/format.h>

#include "app/times.h"
#include "base/units.h"
#include "daemon/control_body.h"
#include "daemon/control_resources.h"

namespace millrace {
namespace {

// Who waits longer asks again: a connection that rests for hours is soon a dead one.
constexpr Duration kPreloadWaitMax = std::chrono::minutes(10);

Json optional_time(const std::optional<WallTime>& time) {
  return time ? Json(format_time(*time)) : Json(nullptr);
}

Json optional_seconds(const std::optional<Duration>& duration) {
  if (!duration) return nullptr;
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(*duration).count());
}

Json preload_document(const PreloadInfo& preload) {
  const PreloadRequest& request = preload.request;
  const PreloadFit& fit = preload.fit;
  return {{"preload", preload.id.value()},
          {"version", request.version.text()},
          {"paths", request.paths},
          {"state", preload_state_name(preload.state)},
          {"holder", request.holder.principal},
          {"run", request.holder.run},
          {"created", format_time(preload.created)},
          {"ended", optional_time(preload.ended)},
          {"files", preload.files},
          {"bytes_total", preload.bytes_total},
          {"bytes_done", preload.bytes_done},
          {"bytes_per_second", preload.bytes_per_second},
          {"seconds_left", optional_seconds(preload.time_left)},
          {"lease_seconds", optional_seconds(request.lease)},
          {"leased_until", optional_time(preload.leased_until)},
          {"bytes_per_second_max", request.bytes_per_second_max},
          {"what_fits", request.what_fits},
          {"fit",
           {{"wanted_bytes", fit.wanted_bytes},
            {"cached_bytes", fit.cached_bytes},
            {"limit_bytes", fit.limit_bytes},
            {"leased_bytes", fit.leased_bytes},
            {"short_bytes", fit.short_bytes}}},
          {"problem", preload.problem},
          {"code",
           preload.code == StatusCode::kOk ? Json(nullptr) : Json(status_code_name(preload.code))}};
}

Result<PreloadRequest> preload_request(const ControlRequest& request) {
  ControlBody body(request.body);
  const std::optional<std::string> version = body.text("version");
  const std::optional<std::uint64_t> lease = body.number("lease_seconds");
  std::vector<std::string> paths = body.texts("paths");
  const std::uint64_t rate = body.number("bytes_per_second_max").value_or(0);
  const bool what_fits = body.flag("what_fits");
  std::string run = body.text("run").value_or("");
  MR_RETURN_IF_ERROR(body.status());
  if (!version) return failure(StatusCode::kInvalidArgument, "the field 'version' is missing");
  MR_ASSIGN_OR_RETURN(VersionRef ref, VersionRef::parse(*version));
  PreloadRequest wanted{
      .version = std::move(ref),
      .paths = std::move(paths),
      .bytes_per_second_max = rate,
      .what_fits = what_fits,
      .holder = {.principal = request.context.principal(), .run = std::move(run)}};
  // More than any lease may last, and far from what a duration can hold.
  constexpr std::uint64_t kSecondsMax = std::uint64_t{1} << 32;
  if (lease) wanted.lease = std::chrono::seconds(std::min(*lease, kSecondsMax));
  return wanted;
}

Result<ControlAnswer> start_preload(Gateway& gateway, const ControlRequest& request) {
  MR_ASSIGN_OR_RETURN(PreloadRequest wanted, preload_request(request));
  MR_ASSIGN_OR_RETURN(const PreloadInfo started,
                      gateway.preloads().start(request.context, std::move(wanted)));
  return json_control_answer(preload_document(started));
}

void show_preload(Gateway& gateway, const ControlRequest& request, Completion<ControlAnswer> done) {
  const std::string text = request.queried("wait");
  const Result<Duration> wait =
      text.empty() ? Result<Duration>(Duration::zero()) : parse_duration(text);
  if (!wait) {
    done.complete(failure(wait.error().with_context("wait")));
    return;
  }
  const PreloadId id(request.parameter("id"));
  const TimePoint deadline = gateway.clock().now() + std::min(*wait, kPreloadWaitMax);
  gateway.preloads().wait(
      request.context.with_deadline(deadline), id,
      Completion<PreloadInfo>(gateway.control(), [&gateway, id, done = std::move(done)](
                                                     const Result<PreloadInfo>& waited) mutable {
        // Once more, for what costs a look at the leases.
        const Result<PreloadInfo> now = waited ? gateway.preloads().find(id) : waited;
        if (now) {
          done.complete(json_control_answer(preload_document(*now)));
        } else {
          done.complete(failure(now.error()));
        }
      }));
}

}  // namespace

void add_preload_routes(ControlRoutes& routes, Gateway& gateway) {
  routes.add(HttpMethod::kGet, "/v1/preloads", [&gateway](const ControlRequest&) -> Result<Json> {
    Json preloads = Json::array();
    for (const PreloadInfo& preload : gateway.preloads().list())
      preloads.push_back(preload_document(preload));
    return Json{{"preloads", std::move(preloads)}};
  });
  // Reading the manifest of a large version takes longer than other requests may.
  routes.add_waiting(HttpMethod::kPost, "/v1/preloads",
                     [&gateway](ControlRequest request, Completion<ControlAnswer> done) {
                       gateway.preload_starts().resume([&gateway, request = std::move(request),
                                                        done = std::move(done)]() mutable {
                         done.complete(start_preload(gateway, request));
                       });
                     });
  routes.add_waiting(HttpMethod::kGet, "/v1/preloads/{id}?wait",
                     [&gateway](const ControlRequest& request, Completion<ControlAnswer> done) {
                       show_preload(gateway, request, std::move(done));
                     });
  routes.add(HttpMethod::kDelete, "/v1/preloads/{id}",
             [&gateway](const ControlRequest& request) -> Result<Json> {
               MR_ASSIGN_OR_RETURN(
                   const PreloadInfo cancelled,
                   gateway.preloads().cancel(request.context, PreloadId(request.parameter("id"))));
               return preload_document(cancelled);
             });
}

}  // namespace millrace
