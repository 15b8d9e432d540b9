#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace millrace::cli {

// What a shell needs to know about one flag.
struct CompletionFlag {
  std::vector<std::string> names;  // "--json", "-q".
  std::string help;
  bool takes_value = false;
  std::vector<std::string> choices;  // Of the value; empty: anything.
  bool takes_path = false;
};

// One command: its words ("store ls"; empty for the program itself), and what may follow.
struct CompletionCommand {
  std::string path;
  std::string help;
  std::vector<CompletionCommand> commands;
  std::vector<CompletionFlag> flags;   // Its own; those of the program are accepted everywhere.
  std::vector<std::string> arguments;  // Words that are accepted as arguments.

  std::string name() const;
};

// Reads the command tree, so that completion knows what the program knows.
CompletionCommand completion_model(const CLI::App& root);

std::string bash_completion(const CompletionCommand& root);
std::string zsh_completion(const CompletionCommand& root);
std::string fish_completion(const CompletionCommand& root);

}  // namespace millrace::cli
