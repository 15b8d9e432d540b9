#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/daemon_settings.h"
#include "cli/document_cells.h"
#include "cli/registry_view.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

std::string list_cell(const Json& document, const char* name, std::string_view otherwise) {
  const auto texts = document.value(name, std::vector<std::string>());
  return texts.empty() ? std::string(otherwise) : fmt::format("{}", fmt::join(texts, ","));
}

std::string squash_cell(const Json& exported) {
  return fmt::format("{} to {}:{}", text_cell(exported, "squash"),
                     count_cell(exported, "anonymous_uid"), count_cell(exported, "anonymous_gid"));
}

// As --sec takes it.
std::string flavours_cell(const Json& exported) {
  const std::string transport = exported.value("transport", "tcp");
  return list_cell(exported, "flavours", "-") + (transport == "tcp" ? "" : "," + transport);
}

Result<int> list_exports(Session& session) {
  MR_RETURN_IF_ERROR(check_daemon_settings(session, session.request()));
  MR_ASSIGN_OR_RETURN(const Json answer, ControlClient(session).get("/v1/exports"));
  std::vector<std::vector<std::string>> rows = {
      {"PATH", "SOURCE", "CLIENTS", "SQUASH", "SEC", "FROM"}};
  for (const Json& exported : answer.value("exports", Json::array())) {
    if (session.output().json()) {
      MR_RETURN_IF_ERROR(session.output().document(exported));
      continue;
    }
    rows.push_back({text_cell(exported, "path"), text_cell(exported, "source"),
                    list_cell(exported, "clients", "all"), squash_cell(exported),
                    flavours_cell(exported),
                    exported.value("setting", false) ? "settings" : "added"});
  }
  if (rows.size() > 1) MR_RETURN_IF_ERROR(print_table(session.output(), rows));
  if (!answer.value("served", false)) {
    session.note("the daemon does not serve NFS: start it with --nfs ADDRESS");
  }
  return 0;
}

}  // namespace

void register_export_ls(CommandLine& line, CLI::App& exports) {
  CLI::App* const command = exports.add_subcommand("ls", "List what NFS clients may mount");
  line.runs(command, list_exports);
}

}  // namespace millrace::cli
