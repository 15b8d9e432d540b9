#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completion_model.h"

namespace millrace::cli {
namespace {

using Visit = std::function<void(const CompletionCommand&)>;

void for_each_command(const CompletionCommand& command, const Visit& visit) {
  visit(command);
  for (const CompletionCommand& sub : command.commands)
    for_each_command(sub, visit);
}

std::vector<std::string> words_after(const CompletionCommand& root,
                                     const CompletionCommand& command) {
  std::vector<std::string> words;
  for (const CompletionCommand& sub : command.commands)
    words.push_back(sub.name());
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  for (const CompletionCommand* level : {&command, &root}) {
    for (const CompletionFlag& flag : level->flags) {
      words.insert(words.end(), flag.names.begin(), flag.names.end());
    }
    if (&command == &root) break;
  }
  return words;
}

// The flags with a value of the whole tree: the word after one is neither command nor flag.
std::vector<CompletionFlag> value_flags(const CompletionCommand& root) {
  std::vector<CompletionFlag> flags;
  for_each_command(root, [&](const CompletionCommand& command) {
    for (const CompletionFlag& flag : command.flags) {
      if (flag.takes_value) flags.push_back(flag);
    }
  });
  return flags;
}

std::string value_flag_pattern(const CompletionCommand& root) {
  std::vector<std::string> names;
  for (const CompletionFlag& flag : value_flags(root)) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return fmt::format("{}", fmt::join(names, "|"));
}

// Lines of a shell's case statement that follow the words into the tree.
std::string descent_cases(const CompletionCommand& root) {
  std::string cases;
  for_each_command(root, [&](const CompletionCommand& command) {
    for (const CompletionCommand& sub : command.commands) {
      cases +=
          fmt::format("      \"{}:{}\") command=\"{}\" ;;\n", command.path, sub.name(), sub.path);
    }
  });
  return cases;
}

// In single quotes of any of the three shells.
std::string quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\'') {
      safe += "\xE2\x80\x99";  // A typographic apostrophe: no shell takes it for a quote.
    } else {
      safe += c;
    }
  }
  return "'" + safe + "'";
}

}  // namespace

std::string bash_completion(const CompletionCommand& root) {
  std::string values;
  for (const CompletionFlag& flag : value_flags(root)) {
    const std::string reply = !flag.choices.empty()
                                  ? fmt::format("compgen -W \"{}\"", fmt::join(flag.choices, " "))
                                  : "compgen -f";
    if (flag.choices.empty() && !flag.takes_path) continue;
    values += fmt::format("    {}) COMPREPLY=($({} -- \"$current\")); return ;;\n",
                          fmt::join(flag.names, "|"), reply);
  }
  std::string words;
  for_each_command(root, [&](const CompletionCommand& command) {
    words += fmt::format("    \"{}\") words=\"{}\" ;;\n", command.path,
                         fmt::join(words_after(root, command), " "));
  });
  return fmt::format(
      "# Completion of millrace for bash. Load it with: source <(millrace completion bash)\n"
      "_millrace() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" previous=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n"
      "  local command=\"\" words=\"\" i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"${{COMP_WORDS[i]}}\" in {}) ((i++)); continue ;; esac\n"
      "    case \"$command:${{COMP_WORDS[i]}}\" in\n{}    esac\n"
      "  done\n"
      "  case \"$previous\" in\n{}    {}) return ;;\n  esac\n"
      "  case \"$command\" in\n{}  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}}\n"
      "complete -o default -F _millrace millrace\n",
      value_flag_pattern(root), descent_cases(root), values, value_flag_pattern(root), words);
}

std::string zsh_completion(const CompletionCommand& root) {
  std::string cases;
  for_each_command(root, [&](const CompletionCommand& command) {
    cases += fmt::format("    \"{}\") candidates=({}) ;;\n", command.path,
                         fmt::join(words_after(root, command), " "));
  });
  std::string values;
  for (const CompletionFlag& flag : value_flags(root)) {
    const std::string action = flag.choices.empty()
                                   ? "_files"
                                   : fmt::format("compadd -- {}", fmt::join(flag.choices, " "));
    values += fmt::format("    {}) {}; return ;;\n", fmt::join(flag.names, "|"), action);
  }
  return fmt::format(
      "#compdef millrace\n"
      "# Completion of millrace for zsh. Load it with: source <(millrace completion zsh)\n"
      "_millrace() {{\n"
      "  local command=\"\" i\n"
      "  local -a candidates\n"
      "  for ((i = 2; i < CURRENT; i++)); do\n"
      "    case \"${{words[i]}}\" in {}) ((i++)); continue ;; esac\n"
      "    case \"$command:${{words[i]}}\" in\n{}    esac\n"
      "  done\n"
      "  case \"${{words[CURRENT-1]}}\" in\n{}  esac\n"
      "  case \"$command\" in\n{}  esac\n"
      "  compadd -- $candidates\n"
      "  _files\n"
      "}}\n"
      "compdef _millrace millrace\n",
      value_flag_pattern(root), descent_cases(root), values, cases);
}

std::string fish_completion(const CompletionCommand& root) {
  std::string text = fmt::format(
      "# Completion of millrace for fish. Load it with: millrace completion fish | source\n"
      "function __millrace_at\n"
      "  set -l command ''\n"
      "  set -l skip 0\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    if test $skip = 1\n      set skip 0\n      continue\n    end\n"
      "    if string match -qr -- '^({})$' $word\n      set skip 1\n      continue\n    end\n"
      "    string match -q -- '-*' $word; and continue\n"
      "    contains -- (string trim \"$command $word\") {}; or continue\n"
      "    set command (string trim \"$command $word\")\n"
      "  end\n"
      "  test \"$command\" = \"$argv\"\n"
      "end\n",
      value_flag_pattern(root), [&] {
        std::vector<std::string> paths;
        for_each_command(root, [&](const CompletionCommand& command) {
          if (!command.path.empty()) paths.push_back(quoted(command.path));
        });
        return fmt::format("{}", fmt::join(paths, " "));
      }());
  for_each_command(root, [&](const CompletionCommand& command) {
    const std::string at =
        fmt::format("complete -c millrace -n \"__millrace_at {}\"", command.path);
    for (const CompletionCommand& sub : command.commands) {
      text += fmt::format("{} -f -a {} -d {}\n", at, sub.name(), quoted(sub.help));
    }
    for (const std::string& word : command.arguments) {
      text += fmt::format("{} -f -a {}\n", at, word);
    }
    for (const CompletionFlag& flag : command.flags) {
      std::string line = command.path.empty() ? "complete -c millrace" : at;
      for (const std::string& name : flag.names) {
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (flag.takes_value) line += flag.takes_path ? " -r -F" : " -x";
      if (!flag.choices.empty()) line += fmt::format(" -a \"{}\"", fmt::join(flag.choices, " "));
      text += line + " -d " + quoted(flag.help) + "\n";
    }
  });
  return text;
}

}  // namespace millrace::cli
