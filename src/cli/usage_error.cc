#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/suggestion.h"
#include "cli/command_line.h"

namespace millrace::cli {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (is_for_people(*sub)) names.push_back(sub->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* level = &app; level != nullptr; level = level->get_parent()) {
    for (const CLI::Option* option : level->get_options()) {
      for (const std::string& name : option->get_lnames())
        names.push_back("--" + name);
      for (const std::string& name : option->get_snames())
        names.push_back("-" + name);
    }
  }
  return names;
}

const CLI::Option* find_option(const CLI::App& app, const std::string& name) {
  for (const CLI::App* level = &app; level != nullptr; level = level->get_parent()) {
    if (const CLI::Option* option = level->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

// 'run' takes the words of another program, whose flags look like ours.
bool takes_a_program(const CLI::App& app) {
  const CLI::Option* const program = app.get_option_no_throw("command");
  return program != nullptr && program->get_positional();
}

// How far the words lead into the tree, and the first word that leads nowhere.
struct Walk {
  CLI::App* command = nullptr;
  std::string path = "millrace";
  std::string unknown_command = {};
  std::string unknown_option = {};
  std::string flag_with_value = {};
  std::vector<std::string> positionals = {};
};

Walk walk(CLI::App& root, const std::vector<std::string>& arguments) {
  Walk at{&root};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") break;
    if (word.size() > 1 && word.starts_with('-')) {
      const std::string name = word.substr(0, word.find('='));
      const CLI::Option* const option = find_option(*at.command, name);
      const bool ours = word.starts_with("--") || takes_a_program(*at.command);
      if (option == nullptr && ours && at.unknown_option.empty()) {
        at.unknown_option = name;
      }
      const bool takes_value = option != nullptr && option->get_items_expected_max() > 0;
      if (option != nullptr && !takes_value && name != word) at.flag_with_value = word;
      if (option != nullptr && option->get_items_expected_min() > 0 && name == word) ++i;
      continue;
    }
    CLI::App* const next = find_command(*at.command, word);
    if (next != nullptr) {
      at.command = next;
      at.path += " " + word;
    } else if (!command_names(*at.command).empty() && !takes_a_program(*at.command)) {
      at.unknown_command = word;
      return at;
    } else {
      at.positionals.push_back(word);
    }
  }
  return at;
}

}  // namespace

std::string unknown_command(const CLI::App& parent, std::string_view word, std::string_view path) {
  const std::vector<std::string> names = command_names(parent);
  const std::string guess = did_you_mean(word, names);
  if (names.empty()) return fmt::format("'{}' has no commands below it: '{}'", path, word);
  return fmt::format("'{}' has no command '{}'{}", path, word,
                     guess.empty() ? fmt::format(": expected {}", fmt::join(names, ", ")) : guess);
}

std::string explain_usage_error(CommandLine& line, const std::vector<std::string>& arguments,
                                const CLI::ParseError& error) {
  const Walk at = walk(line.root, arguments);
  const std::string see = fmt::format(" (see '{} --help')", at.path);
  if (!at.unknown_command.empty()) {
    return unknown_command(*at.command, at.unknown_command, at.path) + see;
  }
  if (!at.unknown_option.empty() && !at.positionals.empty() && takes_a_program(*at.command)) {
    return fmt::format(
        "'{}' has no flag {}: what belongs to '{}' comes after '--', as in '{} -- "
        "{} {} ...'{}",
        at.path, at.unknown_option, at.positionals.front(), at.path, at.positionals.front(),
        at.unknown_option, see);
  }
  if (!at.unknown_option.empty()) {
    return fmt::format("'{}' has no flag {}{}{}", at.path, at.unknown_option,
                       did_you_mean(at.unknown_option, option_names(*at.command)), see);
  }
  if (!at.flag_with_value.empty()) {
    const std::string name = at.flag_with_value.substr(0, at.flag_with_value.find('='));
    return fmt::format("{} takes no value, so not '{}': give it or leave it out{}", name,
                       at.flag_with_value, see);
  }
  const std::vector<std::string> names = command_names(*at.command);
  if (!names.empty() && !takes_a_program(*at.command)) {
    return fmt::format("'{}' needs a command: {}{}", at.path, fmt::join(names, ", "), see);
  }
  std::vector<const CLI::Option*> positional;
  for (const CLI::Option* option : at.command->get_options()) {
    if (option->get_positional()) positional.push_back(option);
  }
  std::size_t taken_max = 0;
  for (const CLI::Option* option : positional)
    taken_max += static_cast<std::size_t>(option->get_items_expected_max());
  if (at.positionals.size() > taken_max) {
    return fmt::format("'{}' does not expect '{}'{}", at.path, at.positionals[taken_max], see);
  }
  for (std::size_t i = at.positionals.size(); i < positional.size(); ++i) {
    if (!positional[i]->get_required()) continue;
    return fmt::format("'{}' needs {}: {}{}", at.path, positional[i]->get_type_name(),
                       positional[i]->get_description(), see);
  }
  return fmt::format("'{}': {}{}", at.path, error.what(), see);
}

}  // namespace millrace::cli
