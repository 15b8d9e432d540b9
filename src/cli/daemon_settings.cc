#include "cli/daemon_settings.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/control_client.h"

namespace millrace::cli {
namespace {

bool is_compared(const SettingOrigin& origin) {
  return origin.spec->served_text != nullptr && origin.source != SettingSource::kDefault;
}

}  // namespace

Status check_daemon_settings(Session& session, const RequestContext& context) {
  const std::vector<SettingOrigin>& origins = session.loaded().origins;
  if (std::ranges::none_of(origins, is_compared)) return {};
  MR_ASSIGN_OR_RETURN(const Json status,
                      ControlClient(session).send(context, HttpMethod::kGet, "/v1/status"));
  const Json settings = status.value("settings", Json::object());
  for (const SettingOrigin& origin : origins) {
    if (!is_compared(origin)) continue;
    const std::string given = origin.spec->served_text(session.settings());
    // A daemon of an earlier release does not say.
    const std::string served = settings.value(std::string(origin.spec->name), given);
    if (served == given) continue;
    return {StatusCode::kConflict,
            fmt::format("the daemon at '{}' runs with {} {}, and {} says {}: give --socket and "
                        "--cache for another daemon beside it, or end it by 'millrace stop'",
                        session.settings().socket, origin.spec->name, served, origin.where, given)};
  }
  return {};
}

}  // namespace millrace::cli
