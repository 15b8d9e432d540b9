#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "app/registry_documents.h"
#include "daemon/control_resources.h"

namespace millrace {
namespace {

constexpr std::size_t kRunsDefault = 20;
constexpr std::size_t kRunsMax = 1000;  // Each costs up to three requests of the store.

Result<std::size_t> runs_wanted(const std::string& text) {
  if (text.empty()) return kRunsDefault;
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count > kRunsMax) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("limit '{}' is not accepted: expected 0 to {}", text, kRunsMax));
  }
  return count;
}

Result<Json> list_runs(Gateway& gateway, const ControlRequest& request) {
  MR_ASSIGN_OR_RETURN(const std::size_t wanted, runs_wanted(request.queried("limit")));
  const RunLog& log = gateway.registry().runs();
  MR_ASSIGN_OR_RETURN(const auto ids, log.ids(request.context));
  Json runs = Json::array();
  for (std::size_t i = 0; i < std::min(wanted, ids.size()); ++i) {
    const auto run = log.run(request.context, ids[i]);
    // A record that is damaged, or not written yet, does not hide the others.
    if (run) {
      runs.push_back(run_document(*run, gateway.clock().wall_now()));
    } else if (run.error().code() != StatusCode::kNotFound &&
               run.error().code() != StatusCode::kCorruption) {
      return failure(run.error());
    }
  }
  return Json{{"runs", std::move(runs)}, {"total", ids.size()}};
}

}  // namespace

void add_run_routes(ControlRoutes& routes, Gateway& gateway) {
  routes.add_asking(HttpMethod::kGet, "/v1/runs?limit", [&gateway](const ControlRequest& request) {
    return list_runs(gateway, request);
  });
}

}  // namespace millrace
