#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "base/status.h"

namespace millrace::cli {

class Session;

// What a command does once its flags are read: the exit code, or the failure to report.
using CommandBody = std::function<Result<int>(Session& session)>;

// The command tree, and the one command of it that the user chose.
struct CommandLine {
  CLI::App root{"The dataset layer between object storage and GPUs", "millrace"};
  CommandBody chosen;

  // What `app` runs when it is the one.
  void runs(CLI::App* app, CommandBody body) {
    app->callback([this, body = std::move(body)] { chosen = body; });
  }
};

// The command of that name below `app`, or null.
inline CLI::App* find_command(CLI::App& app, std::string_view name) {
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) {
    if (sub->get_name() == name) return sub;
  }
  return nullptr;
}

// One function per command, each in its own file. It adds the command to its parent.
using RegisterCommand = void (*)(CommandLine& line, CLI::App& parent);

void register_store_ls(CommandLine& line, CLI::App& store);
void register_store_stat(CommandLine& line, CLI::App& store);
void register_store_cat(CommandLine& line, CLI::App& store);
void register_store_cp(CommandLine& line, CLI::App& store);
void register_store_rm(CommandLine& line, CLI::App& store);
void register_store_bench(CommandLine& line, CLI::App& store);
void register_doctor(CommandLine& line, CLI::App& root);
void register_config_show(CommandLine& line, CLI::App& config);
void register_config_document(CommandLine& line, CLI::App& config);
void register_completion(CommandLine& line, CLI::App& root);
void register_help(CommandLine& line, CLI::App& root);

// The table of all commands: fills line.root.
void register_commands(CommandLine& line);

}  // namespace millrace::cli
