#include <map>
#include <memory>

#include <fmt/format.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"

namespace millrace::cli {
namespace {

struct DatasetLsOptions {
  bool details = false;
  bool all = false;
};

// What the versions of one dataset add up to.
struct DatasetSummary {
  std::uint64_t published = 0;
  std::uint64_t others = 0;
  std::uint64_t bytes = 0;
  // The one that was published last.
  std::string newest = {};
  WallTime newest_published{};

  void add(const VersionEntry& entry) {
    if (!entry.readable()) {
      ++others;
      return;
    }
    ++published;
    bytes += entry.facts->totals.bytes;
    if (newest.empty() || entry.facts->published > newest_published) {
      newest = entry.ref.version.text();
      newest_published = entry.facts->published;
    }
  }
};

Status print_summaries(Output& output, const std::map<DatasetName, DatasetSummary>& summaries,
                       const DatasetLsOptions& options) {
  std::vector<std::vector<std::string>> rows;
  if (options.details) rows.push_back({"DATASET", "VERSIONS", "NEWEST", "SIZE"});
  for (const auto& [name, summary] : summaries) {
    if (summary.published == 0 && !options.all) continue;
    if (output.json()) {
      MR_RETURN_IF_ERROR(output.document(
          {{"dataset", name.text()},
           {"versions", summary.published},
           {"unpublished_versions", summary.others},
           {"newest", summary.newest.empty() ? Json(nullptr) : Json(summary.newest)},
           {"bytes", summary.bytes}}));
    } else if (options.details) {
      rows.push_back({name.text(), std::to_string(summary.published),
                      summary.newest.empty() ? "-" : summary.newest, format_size(summary.bytes)});
    } else {
      rows.push_back({name.text()});
    }
  }
  if (output.json() || (options.details && rows.size() == 1)) return {};
  return print_table(output, rows);
}

Result<int> list_datasets(Session& session, const DatasetLsOptions& options) {
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(auto listings, open.registry.every_version(session.request()));
  const ReadableListing readable = readable_entries(std::move(listings));
  std::map<DatasetName, DatasetSummary> summaries;
  for (const VersionEntry& entry : readable.entries)
    summaries[entry.ref.dataset].add(entry);
  MR_RETURN_IF_ERROR(print_summaries(session.output(), summaries, options));
  MR_RETURN_IF_ERROR(readable.damage);
  if (summaries.empty()) {
    session.note(fmt::format("no datasets in {} yet", open.store->describe()));
  }
  return 0;
}

}  // namespace

void register_dataset_ls(CommandLine& line, CLI::App& dataset) {
  auto options = std::make_shared<DatasetLsOptions>();
  CLI::App* const command = dataset.add_subcommand("ls", "List datasets");
  command->add_flag("-l,--long", options->details, "Show versions and sizes");
  command->add_flag("-a,--all", options->all, "Also those without a published version");
  line.runs(command, [options](Session& session) { return list_datasets(session, *options); });
}

}  // namespace millrace::cli
