#include "cli/completion_model.h"

#include <algorithm>

#include "cli/command.h"

namespace millrace::cli {
namespace {

// A value that is one of a few words is written "a|b|c" in the help.
std::vector<std::string> split_choices(const std::string& type) {
  std::vector<std::string> choices;
  if (!type.contains('|')) return choices;
  for (std::size_t start = 0; start <= type.size();) {
    const auto end = std::min(type.find('|', start), type.size());
    choices.push_back(type.substr(start, end - start));
    start = end + 1;
  }
  return choices;
}

CompletionFlag flag_of(const CLI::Option& option) {
  CompletionFlag flag;
  for (const std::string& name : option.get_lnames())
    flag.names.push_back("--" + name);
  for (const std::string& name : option.get_snames())
    flag.names.push_back("-" + name);
  flag.help = option.get_description();
  flag.takes_value = option.get_items_expected_min() > 0;
  const std::string type = option.get_type_name();
  flag.choices = split_choices(type);
  flag.takes_path = type == "FILE" || type == "DIR" || type == "PATH";
  return flag;
}

CompletionCommand command_of(const CLI::App& app, const std::string& path) {
  CompletionCommand command{path, app.get_description(), {}, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      const auto choices = split_choices(option->get_type_name());
      command.arguments.insert(command.arguments.end(), choices.begin(), choices.end());
    } else {
      command.flags.push_back(flag_of(*option));
    }
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!is_for_people(*sub)) continue;
    const std::string prefix = path.empty() ? "" : path + " ";
    command.commands.push_back(command_of(*sub, prefix + sub->get_name()));
  }
  return command;
}

}  // namespace

std::string CompletionCommand::name() const {
  const auto blank = path.rfind(' ');
  return blank == std::string::npos ? path : path.substr(blank + 1);
}

CompletionCommand completion_model(const CLI::App& root) { return command_of(root, ""); }

}  // namespace millrace::cli
