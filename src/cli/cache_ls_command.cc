#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/daemon_settings.h"
#include "cli/document_cells.h"
#include "cli/registry_view.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

Result<int> list_cached_versions(Session& session) {
  MR_RETURN_IF_ERROR(check_daemon_settings(session, session.request()));
  MR_ASSIGN_OR_RETURN(
      const Json answer,
      ControlClient(session).send(session.context(), HttpMethod::kGet, "/v1/cache/versions"));
  std::vector<std::vector<std::string>> rows = {{"VERSION", "CACHED", "OF", "LEASED UNTIL"}};
  for (const Json& version : answer.value("versions", Json::array())) {
    if (session.output().json()) {
      MR_RETURN_IF_ERROR(session.output().document(version));
    } else {
      rows.push_back({text_cell(version, "version"), size_cell(version, "cached_bytes"),
                      size_cell(version, "total_bytes"), text_cell(version, "leased_until")});
    }
  }
  if (rows.size() > 1) MR_RETURN_IF_ERROR(print_table(session.output(), rows));
  return 0;
}

}  // namespace

void register_cache_ls(CommandLine& line, CLI::App& cache) {
  CLI::App* const command =
      cache.add_subcommand("ls", "List versions of which something is cached or leased");
  line.runs(command, list_cached_versions);
}

}  // namespace millrace::cli
