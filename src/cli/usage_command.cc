#include <cctype>
#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/daemon_settings.h"
#include "cli/document_cells.h"
#include "cli/registry_view.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

Result<int> show_usage(Session& session, const std::string& by) {
  MR_RETURN_IF_ERROR(check_daemon_settings(session, session.request()));
  const std::string query = by.empty() ? "" : "?by=" + ControlClient::component(by);
  MR_ASSIGN_OR_RETURN(const Json answer, ControlClient(session).get("/v1/usage" + query));
  std::vector<std::string> head = by.empty()
                                      ? std::vector<std::string>{"version", "principal", "run"}
                                      : std::vector<std::string>{by};
  std::vector<std::vector<std::string>> rows;
  for (const Json& row : answer.value("usage", Json::array())) {
    if (session.output().json()) {
      MR_RETURN_IF_ERROR(session.output().document(row));
      continue;
    }
    std::vector<std::string>& cells = rows.emplace_back();
    for (const std::string& name : head)
      cells.push_back(text_cell(row, name.c_str()));
    cells.insert(cells.end(), {size_cell(row, "read_bytes"), count_cell(row, "reads"),
                               size_cell(row, "fetched_bytes"), count_cell(row, "fetches"),
                               count_cell(row, "handed_out_files"), text_cell(row, "last")});
  }
  if (rows.empty()) return 0;
  for (std::string& name : head) {
    for (char& c : name)
      c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  head.insert(head.end(), {"READ", "READS", "FROM STORE", "REQUESTS", "WHOLE FILES", "LAST"});
  rows.insert(rows.begin(), std::move(head));
  MR_RETURN_IF_ERROR(print_table(session.output(), rows));
  return 0;
}

}  // namespace

void register_usage(CommandLine& line, CLI::App& root) {
  auto by = std::make_shared<std::string>();
  CLI::App* const command =
      root.add_subcommand("usage", "Who read what through this machine's daemon");
  command->add_option("--by", *by, "Add up by version, principal or run")->type_name("NAME");
  line.runs(command, [by](Session& session) { return show_usage(session, *by); });
}

}  // namespace millrace::cli
