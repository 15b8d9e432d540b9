#include <array>
#include <string_view>

#include "cli/bench_loader_command.h"
#include "cli/command.h"

namespace millrace::cli {
namespace {

struct Row {
  std::string_view noun;  // Empty: directly below the root.
  std::string_view noun_help;
  std::string_view group;
  RegisterCommand add;
};

constexpr std::string_view kStoreHelp = "Object stores: ls, stat, cat, cp, rm, bench";
constexpr std::string_view kDatasetHelp = "Datasets: ls, show, rm";
constexpr std::string_view kVersionHelp = "Versions of datasets: ls, show, diff, rm, restore, ...";
constexpr std::string_view kAliasHelp = "Names that point to versions: set, ls, rollback, rm";
constexpr std::string_view kRegistryHelp = "The registry as YAML: import, export";
constexpr std::string_view kConfigHelp = "Settings: show";
constexpr std::string_view kCacheHelp = "The cache of this machine: ls, stat, drop, verify";
constexpr std::string_view kBenchHelp = "Measurements of this machine: loader";
constexpr std::string_view kExportHelp = "What NFS clients may mount: add, ls, rm";

// Every command, in the order of the help.
constexpr std::array kRows = {
    Row{"store", kStoreHelp, "Data", register_store_ls},
    Row{"store", kStoreHelp, "Data", register_store_stat},
    Row{"store", kStoreHelp, "Data", register_store_cat},
    Row{"store", kStoreHelp, "Data", register_store_cp},
    Row{"store", kStoreHelp, "Data", register_store_rm},
    Row{"store", kStoreHelp, "Data", register_store_bench},
    Row{"", "", "This machine", register_mount},
    Row{"", "", "This machine", register_umount},
    Row{"", "", "This machine", register_serve},
    Row{"", "", "This machine", register_status},
    Row{"", "", "This machine", register_stop},
    Row{"", "", "This machine", register_doctor},
    Row{"config", kConfigHelp, "This machine", register_config_show},
    Row{"config", kConfigHelp, "This machine", register_config_document},
    Row{"", "", "This machine", register_completion},
    Row{"", "", "This machine", register_help},
    Row{"", "", "", register_keeper},
    Row{"", "", "Data", register_publish},
    Row{"", "", "Data", register_register},
    Row{"", "", "Data", register_promote},
    Row{"dataset", kDatasetHelp, "Data", register_dataset_ls},
    Row{"dataset", kDatasetHelp, "Data", register_dataset_show},
    Row{"dataset", kDatasetHelp, "Data", register_dataset_rm},
    Row{"version", kVersionHelp, "Data", register_version_ls},
    Row{"version", kVersionHelp, "Data", register_version_show},
    Row{"version", kVersionHelp, "Data", register_version_diff},
    Row{"version", kVersionHelp, "Data", register_version_rm},
    Row{"version", kVersionHelp, "Data", register_version_restore},
    Row{"version", kVersionHelp, "Data", register_version_extract},
    Row{"version", kVersionHelp, "Data", register_version_export},
    Row{"version", kVersionHelp, "Data", register_version_verify},
    Row{"version", kVersionHelp, "Data", register_version_gc},
    Row{"alias", kAliasHelp, "Data", register_alias_set},
    Row{"alias", kAliasHelp, "Data", register_alias_ls},
    Row{"alias", kAliasHelp, "Data", register_alias_rollback},
    Row{"alias", kAliasHelp, "Data", register_alias_rm},
    Row{"", "", "Data", register_run},
    Row{"run", "", "Data", register_run_ls},
    Row{"run", "", "Data", register_run_show},
    Row{"", "", "Data", register_preload},
    Row{"preload", "", "Data", register_preload_ls},
    Row{"preload", "", "Data", register_preload_cancel},
    Row{"cache", kCacheHelp, "This machine", register_cache_ls},
    Row{"cache", kCacheHelp, "This machine", register_cache_stat},
    Row{"cache", kCacheHelp, "This machine", register_cache_drop},
    Row{"cache", kCacheHelp, "This machine", register_cache_verify},
    Row{"export", kExportHelp, "This machine", register_export_add},
    Row{"export", kExportHelp, "This machine", register_export_ls},
    Row{"export", kExportHelp, "This machine", register_export_rm},
    Row{"", "", "This machine", register_usage},
    Row{"", "", "Data", register_simulate},
    Row{"bench", kBenchHelp, "Data", register_bench_loader},
    Row{"registry", kRegistryHelp, "Data", register_registry_import},
    Row{"registry", kRegistryHelp, "Data", register_registry_export},
};

}  // namespace

void register_commands(CommandLine& line) {
  for (const Row& row : kRows) {
    CLI::App* parent = &line.root;
    if (!row.noun.empty()) {
      const std::string noun(row.noun);
      parent = find_command(line.root, noun);
      if (parent == nullptr) {
        parent = line.root.add_subcommand(noun, std::string(row.noun_help));
        parent->require_subcommand(1);
        parent->group(std::string(row.group));
      }
    }
    row.add(line, *parent);
    if (row.noun.empty()) {
      // The command that was just added is the last one.
      line.root.get_subcommands([](CLI::App*) { return true; })
          .back()
          ->group(std::string(row.group));
    }
  }
}

}  // namespace millrace::cli
