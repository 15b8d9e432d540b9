#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"
#include "cli/version_ls_table.h"
#include "cli/version_rm_options.h"

namespace millrace::cli {
namespace {

struct DatasetRmOptions {
  std::string dataset;
  RemovalOptions removal;
};

Result<int> remove_dataset(Session& session, const DatasetRmOptions& options) {
  MR_ASSIGN_OR_RETURN(const DatasetName dataset, DatasetName::parse(options.dataset));
  MR_ASSIGN_OR_RETURN(const Duration retention, retention_of(options.removal));
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(auto listings, open.registry.versions(session.request(), dataset));
  if (listings.empty()) return failure(no_such_dataset(dataset, *open.store));
  ReadableListing readable = readable_entries(std::move(listings));
  std::erase_if(readable.entries, [](const VersionEntry& entry) { return !entry.readable(); });
  if (readable.entries.empty()) {
    MR_RETURN_IF_ERROR(readable.damage);
    return failure(StatusCode::kNotFound, fmt::format("{} has no published version: 'millrace "
                                                      "version ls --all {}' shows the others",
                                                      dataset.text(), dataset.text()));
  }
  const std::string what = fmt::format(
      "{} of {}", count_text(readable.entries.size(), "version", "versions"), dataset.text());
  if (!options.removal.yes) {
    if (!Session::can_ask()) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("this would remove {}: add --yes if you mean it", what));
    }
    if (!session.confirm(fmt::format("Remove all {}?", what))) {
      return failure(StatusCode::kCancelled, "nothing was removed");
    }
  }
  for (const VersionEntry& entry : readable.entries) {
    MR_ASSIGN_OR_RETURN(
        const VersionEntry removed,
        open.registry.remove(session.request(), entry.ref, options.removal.reason, retention));
    MR_RETURN_IF_ERROR(report_removed(session, removed));
  }
  MR_RETURN_IF_ERROR(readable.damage);
  return 0;
}

}  // namespace

void register_dataset_rm(CommandLine& line, CLI::App& dataset) {
  auto options = std::make_shared<DatasetRmOptions>();
  CLI::App* const command = dataset.add_subcommand(
      "rm", "Remove all published versions of a dataset, restorable for a while");
  command->add_option("dataset", options->dataset, "The dataset, such as imagenet")
      ->type_name("DATASET")
      ->required();
  add_removal_options(*command, options->removal);
  line.runs(command, changing_registry([options](Session& session) {
              return remove_dataset(session, *options);
            }));
}

}  // namespace millrace::cli
