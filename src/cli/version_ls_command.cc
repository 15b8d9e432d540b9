#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"
#include "cli/version_ls_table.h"

namespace millrace::cli {
namespace {

struct VersionLsOptions {
  std::string dataset;
  bool details = false;
  bool all = false;
};

Status print_entries(Output& output, const std::vector<VersionEntry>& entries, bool details) {
  if (!output.json() && details) return print_versions(output, entries);
  for (const VersionEntry& entry : entries) {
    MR_RETURN_IF_ERROR(output.json() ? output.document(version_document(entry))
                                     : output.line(entry.ref.text()));
  }
  return {};
}

Result<std::vector<VersionListing>> list_of(Session& session, const OpenRegistry& open,
                                            const std::string& name) {
  if (name.empty()) return open.registry.every_version(session.request());
  MR_ASSIGN_OR_RETURN(const DatasetName dataset, DatasetName::parse(name));
  MR_ASSIGN_OR_RETURN(auto listings, open.registry.versions(session.request(), dataset));
  if (listings.empty()) return failure(no_such_dataset(dataset, *open.store));
  return listings;
}

Result<int> list_versions(Session& session, const VersionLsOptions& options) {
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(auto listings, list_of(session, open, options.dataset));
  ReadableListing readable = readable_entries(std::move(listings));
  std::size_t hidden = 0;
  if (!options.all) {
    hidden = std::erase_if(readable.entries,
                           [](const VersionEntry& entry) { return !entry.readable(); });
  }
  // Which state each is in only matters, and is only told apart, in the table.
  MR_RETURN_IF_ERROR(
      print_entries(session.output(), readable.entries, options.details || options.all));
  MR_RETURN_IF_ERROR(readable.damage);
  if (hidden > 0) {
    session.note(fmt::format("{} not published (add --all to see)",
                             count_text(hidden, "more version is", "more versions are")));
  }
  return 0;
}

}  // namespace

void register_version_ls(CommandLine& line, CLI::App& version) {
  auto options = std::make_shared<VersionLsOptions>();
  CLI::App* const command = version.add_subcommand("ls", "List versions, of one dataset or all");
  command->add_option("dataset", options->dataset, "Only those of this dataset")
      ->type_name("DATASET");
  command->add_flag("-l,--long", options->details, "Show state, date, files, size and notes");
  command->add_flag("-a,--all", options->all, "Also reserved, aborted, removed and purged ones");
  line.runs(command, [options](Session& session) { return list_versions(session, *options); });
}

}  // namespace millrace::cli
