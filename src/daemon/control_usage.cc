#include <map>

#include <fmt/format.h>

#include "app/times.h"
#include "daemon/control_resources.h"

namespace millrace {
namespace {

Json usage_document(const UsageRow& row) {
  return {{"version", row.key.version},
          {"principal", row.key.principal},
          {"run", row.key.run},
          {"read_bytes", row.counts.read_bytes},
          {"reads", row.counts.reads},
          {"fetches", row.counts.fetches},
          {"fetched_bytes", row.counts.fetched_bytes},
          {"handed_out_files", row.counts.handed_out_files},
          {"handed_out_bytes", row.counts.handed_out_bytes},
          {"last", format_time(row.last)}};
}

// What rows have in common when they are added up; the rest is empty.
Result<UsageKey> grouped(const UsageKey& key, const std::string& by) {
  if (by.empty()) return key;
  if (by == "version") return UsageKey{.version = key.version, .principal = "", .run = ""};
  if (by == "principal") return UsageKey{.version = "", .principal = key.principal, .run = ""};
  if (by == "run") return UsageKey{.version = "", .principal = "", .run = key.run};
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("by '{}' is not accepted: expected version, principal or run", by));
}

// ?by=version|principal|run adds rows up; ?run=ID shows what that run read.
Result<Json> show_usage(Gateway& gateway, const ControlRequest& request) {
  const std::string by = request.queried("by");
  const std::string run = request.queried("run");
  MR_ASSIGN_OR_RETURN([[maybe_unused]] const UsageKey accepted, grouped({}, by));
  std::map<UsageKey, UsageRow> rows;
  for (const UsageRow& row : gateway.usage().rows()) {
    if (!run.empty() && row.key.run != run) continue;
    MR_ASSIGN_OR_RETURN(const UsageKey key, grouped(row.key, by));
    UsageRow& sum = rows[key];
    sum.key = key;
    sum.counts += row.counts;
    sum.last = std::max(sum.last, row.last);
  }
  Json shown = Json::array();
  for (const auto& [key, row] : rows)
    shown.push_back(usage_document(row));
  return Json{{"usage", std::move(shown)}};
}

// ?run=ID, which is needed: the samples that its loaders could not have.
Result<Json> show_failures(Gateway& gateway, const ControlRequest& request) {
  const std::string run = request.queried("run");
  if (run.empty()) return failure(StatusCode::kInvalidArgument, "name the run: ?run=ID");
  Json shown = Json::array();
  for (const FailedSample& row : gateway.failed_samples().of_run(run)) {
    shown.push_back({{"dataset", row.dataset},
                     {"sample", row.sample},
                     {"key", row.key},
                     {"action", row.action},
                     {"error", row.error},
                     {"times", row.times},
                     {"last", format_time(row.last)}});
  }
  return Json{{"failures", std::move(shown)}};
}

}  // namespace

void add_usage_routes(ControlRoutes& routes, Gateway& gateway) {
  routes.add(HttpMethod::kGet, "/v1/usage?by&run",
             [&gateway](const ControlRequest& request) { return show_usage(gateway, request); });
  routes.add(HttpMethod::kGet, "/v1/failures?run",
             [&gateway](const ControlRequest& request) { return show_failures(gateway, request); });
}

}  // namespace millrace
