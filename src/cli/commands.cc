#include <array>
#include <string_view>

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
constexpr std::string_view kConfigHelp = "Settings: show";

// Every command, in the order of the help.
constexpr std::array kRows = {
    Row{"store", kStoreHelp, "Data", register_store_ls},
    Row{"store", kStoreHelp, "Data", register_store_stat},
    Row{"store", kStoreHelp, "Data", register_store_cat},
    Row{"store", kStoreHelp, "Data", register_store_cp},
    Row{"store", kStoreHelp, "Data", register_store_rm},
    Row{"store", kStoreHelp, "Data", register_store_bench},
    Row{"", "", "This machine", register_doctor},
    Row{"config", kConfigHelp, "This machine", register_config_show},
    Row{"config", kConfigHelp, "This machine", register_config_document},
    Row{"", "", "This machine", register_completion},
    Row{"", "", "This machine", register_help},
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
