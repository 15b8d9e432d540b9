#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "app/times.h"
#include "cli/command.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"
#include "cli/version_ls_table.h"

namespace millrace::cli {
namespace {

Status print_aliases(Output& output, const std::vector<AliasEntry>& entries) {
  std::vector<std::vector<std::string>> rows = {{"ALIAS", "WHEN", "EVENT", "FROM", "TO", "WHO"}};
  for (const AliasEntry& entry : entries) {
    if (output.json()) {
      MR_RETURN_IF_ERROR(output.document(alias_document(entry)));
      continue;
    }
    rows.push_back({fmt::format("{}@{}", entry.dataset.text(), entry.alias.text()),
                    format_time(entry.time), std::string(alias_event_name(entry.event)),
                    entry.previous ? entry.previous->text() : "-",
                    entry.target ? entry.target->text() : "-", entry.who.describe()});
  }
  if (output.json() || entries.empty()) return {};
  return print_table(output, rows);
}

Result<std::vector<AliasEntry>> aliases_of(Session& session, const OpenRegistry& open,
                                           const std::string& text) {
  const RegistryAliases& aliases = open.registry.aliases();
  if (text.contains('@')) {
    MR_ASSIGN_OR_RETURN(const AliasRef alias, AliasRef::parse(text));
    return aliases.history(session.request(), alias.dataset, alias.alias);
  }
  MR_ASSIGN_OR_RETURN(auto datasets, open.registry.datasets(session.request()));
  if (!text.empty()) {
    MR_ASSIGN_OR_RETURN(const DatasetName dataset, DatasetName::parse(text));
    // Else a misspelt name would look like a dataset without aliases.
    if (std::ranges::find(datasets, dataset) == datasets.end()) {
      return failure(no_such_dataset(dataset, *open.store));
    }
    datasets = {dataset};
  }
  std::vector<AliasEntry> all;
  for (const DatasetName& dataset : datasets) {
    MR_ASSIGN_OR_RETURN(auto some, aliases.list(session.request(), dataset));
    std::ranges::move(some, std::back_inserter(all));
  }
  return all;
}

Result<int> list_aliases(Session& session, const std::string& text) {
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(const auto entries, aliases_of(session, open, text));
  MR_RETURN_IF_ERROR(print_aliases(session.output(), entries));
  return 0;
}

}  // namespace

void register_alias_ls(CommandLine& line, CLI::App& alias) {
  auto what = std::make_shared<std::string>();
  CLI::App* const command = alias.add_subcommand(
      "ls", "List aliases with their last move; of one alias all moves, oldest first");
  command
      ->add_option("what", *what, "DATASET for its aliases, DATASET@ALIAS for the history of one")
      ->type_name("DATASET[@ALIAS]");
  line.runs(command, [what](Session& session) { return list_aliases(session, *what); });
}

}  // namespace millrace::cli
