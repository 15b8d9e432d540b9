#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/daemon_settings.h"
#include "cli/document_cells.h"
#include "cli/registry_view.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

std::string left_cell(const Json& preload) {
  const std::optional<Duration> left = seconds_of(preload, "seconds_left");
  return left ? format_duration(*left) : "-";
}

std::vector<std::string> preload_row(const Json& preload) {
  const std::uint64_t rate = number_of(preload, "bytes_per_second");
  return {text_cell(preload, "preload"),
          text_cell(preload, "version"),
          text_cell(preload, "state"),
          size_cell(preload, "bytes_done"),
          size_cell(preload, "bytes_total"),
          rate == 0 ? "-" : format_size(rate) + "/s",
          left_cell(preload),
          text_cell(preload, "leased_until"),
          text_cell(preload, "problem")};
}

Result<int> list_preloads(Session& session) {
  MR_RETURN_IF_ERROR(check_daemon_settings(session, session.request()));
  MR_ASSIGN_OR_RETURN(const Json answer, ControlClient(session).get("/v1/preloads"));
  std::vector<std::vector<std::string>> rows = {
      {"PRELOAD", "VERSION", "STATE", "DONE", "OF", "RATE", "LEFT", "LEASED UNTIL", "PROBLEM"}};
  for (const Json& preload : answer.value("preloads", Json::array())) {
    if (session.output().json()) {
      MR_RETURN_IF_ERROR(session.output().document(preload));
    } else {
      rows.push_back(preload_row(preload));
    }
  }
  if (rows.size() > 1) MR_RETURN_IF_ERROR(print_table(session.output(), rows));
  return 0;
}

}  // namespace

void register_preload_ls(CommandLine& line, CLI::App& preload) {
  CLI::App* const command = preload.add_subcommand("ls", "List preloads, newest first");
  line.runs(command, list_preloads);
}

}  // namespace millrace::cli
