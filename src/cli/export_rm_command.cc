#include <memory>

#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/daemon_settings.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

Result<int> remove_export(Session& session, const std::string& path) {
  MR_RETURN_IF_ERROR(check_daemon_settings(session, session.request()));
  MR_ASSIGN_OR_RETURN([[maybe_unused]] const Json answer,
                      ControlClient(session).send(session.request(), HttpMethod::kDelete,
                                                  "/v1/exports/" + ControlClient::component(path)));
  return 0;
}

}  // namespace

void register_export_rm(CommandLine& line, CLI::App& exports) {
  auto path = std::make_shared<std::string>();
  CLI::App* const command =
      exports.add_subcommand("rm", "End an export; clients that have it find it stale");
  command->add_option("path", *path, "As 'millrace export ls' shows it")
      ->type_name("PATH")
      ->required();
  line.runs(command, [path](Session& session) { return remove_export(session, *path); });
}

}  // namespace millrace::cli
