#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"
#include "cli/version_ls_table.h"

namespace millrace::cli {
namespace {

Result<int> show_dataset(Session& session, const std::string& name) {
  MR_ASSIGN_OR_RETURN(const DatasetName dataset, DatasetName::parse(name));
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(auto listings, open.registry.versions(session.request(), dataset));
  if (listings.empty()) return failure(no_such_dataset(dataset, *open.store));
  const ReadableListing readable = readable_entries(std::move(listings));
  MR_ASSIGN_OR_RETURN(const auto aliases, open.registry.aliases().list(session.request(), dataset));
  Output& output = session.output();
  if (output.json()) {
    Json document = {
        {"dataset", dataset.text()}, {"versions", Json::array()}, {"aliases", Json::array()}};
    for (const VersionEntry& entry : readable.entries)
      document["versions"].push_back(version_document(entry));
    for (const AliasEntry& alias : aliases)
      document["aliases"].push_back(alias_document(alias));
    MR_RETURN_IF_ERROR(output.document(document));
  } else {
    MR_RETURN_IF_ERROR(output.line(fmt::format("dataset: {}", dataset.text())));
    for (const AliasEntry& alias : aliases) {
      MR_RETURN_IF_ERROR(output.line(fmt::format(
          "alias:   {} -> {} (since {}, {})", alias.alias.text(),
          alias.target ? alias.target->text() : "-", date_text(alias.time), who_text(alias.who))));
    }
    MR_RETURN_IF_ERROR(output.line(""));
    MR_RETURN_IF_ERROR(print_versions(output, readable.entries));
  }
  MR_RETURN_IF_ERROR(readable.damage);
  return 0;
}

}  // namespace

void register_dataset_show(CommandLine& line, CLI::App& dataset) {
  auto name = std::make_shared<std::string>();
  CLI::App* const command =
      dataset.add_subcommand("show", "Show a dataset: its aliases and all its versions");
  command->add_option("dataset", *name, "The dataset, such as imagenet")
      ->type_name("DATASET")
      ->required();
  line.runs(command, [name](Session& session) { return show_dataset(session, *name); });
}

}  // namespace millrace::cli
