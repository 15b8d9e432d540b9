#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/daemon_settings.h"
#include "cli/document_cells.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

Result<int> cancel_preload(Session& session, const std::string& id) {
  MR_RETURN_IF_ERROR(check_daemon_settings(session, session.request()));
  MR_ASSIGN_OR_RETURN(const Json cancelled,
                      ControlClient(session).send(session.request(), HttpMethod::kDelete,
                                                  "/v1/preloads/" + ControlClient::component(id)));
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document(cancelled));
  } else {
    session.note(
        fmt::format("the preload {} is {}, and has no lease", id, text_cell(cancelled, "state")));
  }
  return 0;
}

}  // namespace

void register_preload_cancel(CommandLine& line, CLI::App& preload) {
  auto id = std::make_shared<std::string>();
  CLI::App* const command = preload.add_subcommand("cancel", "End a preload and its lease");
  command->add_option("preload", *id, "Its id, as 'millrace preload ls' shows it")
      ->type_name("PRELOAD")
      ->required();
  line.runs(command, [id](Session& session) { return cancel_preload(session, *id); });
}

}  // namespace millrace::cli
