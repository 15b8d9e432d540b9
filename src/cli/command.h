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
  bool needs_settings = true;

  // What `app` runs when it is the one.
  void runs(CLI::App* app, CommandBody body) {
    app->callback([this, body = std::move(body)] { chosen = body; });
  }
  // The same where settings that cannot be read are no reason not to.
  void runs_anyhow(CLI::App* app, CommandBody body) {
    app->callback([this, body = std::move(body)] {
      chosen = body;
      needs_settings = false;
    });
  }
};

// The command of that name below `app`, or null.
inline CLI::App* find_command(CLI::App& app, std::string_view name) {
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) {
    if (sub->get_name() == name) return sub;
  }
  return nullptr;
}

// False for what only programs of ours call.
inline bool is_for_people(const CLI::App& command) { return !command.get_group().empty(); }

// One function per command, each in its own file. It adds the command to its parent.
using RegisterCommand = void (*)(CommandLine& line, CLI::App& parent);

void register_store_ls(CommandLine& line, CLI::App& store);
void register_store_stat(CommandLine& line, CLI::App& store);
void register_store_cat(CommandLine& line, CLI::App& store);
void register_store_cp(CommandLine& line, CLI::App& store);
void register_store_rm(CommandLine& line, CLI::App& store);
void register_store_bench(CommandLine& line, CLI::App& store);
void register_dataset_ls(CommandLine& line, CLI::App& dataset);
void register_dataset_show(CommandLine& line, CLI::App& dataset);
void register_dataset_rm(CommandLine& line, CLI::App& dataset);
void register_version_ls(CommandLine& line, CLI::App& version);
void register_version_show(CommandLine& line, CLI::App& version);
void register_version_diff(CommandLine& line, CLI::App& version);
void register_version_rm(CommandLine& line, CLI::App& version);
void register_version_restore(CommandLine& line, CLI::App& version);
void register_version_extract(CommandLine& line, CLI::App& version);
void register_version_export(CommandLine& line, CLI::App& version);
void register_version_verify(CommandLine& line, CLI::App& version);
void register_version_gc(CommandLine& line, CLI::App& version);
void register_alias_set(CommandLine& line, CLI::App& alias);
void register_alias_ls(CommandLine& line, CLI::App& alias);
void register_alias_rollback(CommandLine& line, CLI::App& alias);
void register_alias_rm(CommandLine& line, CLI::App& alias);
void register_run(CommandLine& line, CLI::App& root);
void register_run_ls(CommandLine& line, CLI::App& run);
void register_run_show(CommandLine& line, CLI::App& run);
void register_registry_import(CommandLine& line, CLI::App& registry);
void register_registry_export(CommandLine& line, CLI::App& registry);
void register_publish(CommandLine& line, CLI::App& root);
void register_register(CommandLine& line, CLI::App& root);
void register_promote(CommandLine& line, CLI::App& root);
void register_serve(CommandLine& line, CLI::App& root);
void register_status(CommandLine& line, CLI::App& root);
void register_stop(CommandLine& line, CLI::App& root);
void register_mount(CommandLine& line, CLI::App& root);
void register_umount(CommandLine& line, CLI::App& root);
void register_keeper(CommandLine& line, CLI::App& root);
void register_preload(CommandLine& line, CLI::App& root);
void register_preload_ls(CommandLine& line, CLI::App& preload);
void register_preload_cancel(CommandLine& line, CLI::App& preload);
void register_cache_ls(CommandLine& line, CLI::App& cache);
void register_cache_stat(CommandLine& line, CLI::App& cache);
void register_cache_drop(CommandLine& line, CLI::App& cache);
void register_cache_verify(CommandLine& line, CLI::App& cache);
void register_export_add(CommandLine& line, CLI::App& exports);
void register_export_ls(CommandLine& line, CLI::App& exports);
void register_export_rm(CommandLine& line, CLI::App& exports);
void register_usage(CommandLine& line, CLI::App& root);
void register_simulate(CommandLine& line, CLI::App& root);
void register_doctor(CommandLine& line, CLI::App& root);
void register_config_show(CommandLine& line, CLI::App& config);
void register_config_document(CommandLine& line, CLI::App& config);
void register_completion(CommandLine& line, CLI::App& root);
void register_help(CommandLine& line, CLI::App& root);

// The table of all commands: fills line.root.
void register_commands(CommandLine& line);

}  // namespace millrace::cli
