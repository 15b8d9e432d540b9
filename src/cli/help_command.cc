#include <memory>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/exit_code.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

Result<int> help(Session& session, CommandLine& line, const std::vector<std::string>& topic) {
  if (topic == std::vector<std::string>{"exit-codes"}) {
    if (session.output().json()) {
      Json rows = Json::array();
      for (const ExitCode& row : all_exit_codes()) {
        rows.push_back({{"exit_code", row.number}, {"meaning", row.meaning}});
      }
      MR_RETURN_IF_ERROR(session.output().document(rows));
      return 0;
    }
    MR_RETURN_IF_ERROR(session.output().write(as_bytes(exit_codes_text())));
    return 0;
  }
  CLI::App* command = &line.root;
  std::string path = "millrace";
  for (const std::string& word : topic) {
    CLI::App* const next = find_command(*command, word);
    if (next == nullptr) {
      return failure(StatusCode::kInvalidArgument, unknown_command(*command, word, path));
    }
    command = next;
    path += " " + word;
  }
  MR_RETURN_IF_ERROR(session.output().write(as_bytes(help_text(line, *command))));
  return 0;
}

}  // namespace

void register_help(CommandLine& line, CLI::App& root) {
  auto topic = std::make_shared<std::vector<std::string>>();
  CLI::App* const command = root.add_subcommand("help", "Explain a command, or the exit codes");
  command->add_option("topic", *topic, "A command such as 'store cp', or exit-codes")
      ->type_name("COMMAND");
  line.runs(command, [&line, topic](Session& session) { return help(session, line, *topic); });
}

}  // namespace millrace::cli
