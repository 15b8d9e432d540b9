#include "dataset/registry_names.h"

#include <fmt/format.h>

#include "dataset/alias_log.h"
#include "dataset/append_log_listing.h"
#include "dataset/registry_keys.h"
#include "dataset/version_log.h"

namespace millrace {

namespace {

// The datasets with any record whose name is a beginning of this one, or the reverse.
Result<std::vector<DatasetName>> overlapping_datasets(const RequestContext& context,
                                                      const RegistryAccess& access,
                                                      const DatasetName& dataset) {
  std::vector<DatasetName> found;
  for (DatasetName& shorter : dataset.proper_prefixes()) {
    MR_ASSIGN_OR_RETURN(
        const ListPage page,
        access.store.list(context, {.prefix = version_logs_prefix(shorter), .entries_max = 1}));
    if (!page.objects.empty()) found.push_back(std::move(shorter));
  }
  const std::string below = fmt::format("{}{},", kDatasetsPrefix, dataset.key_component());
  MR_ASSIGN_OR_RETURN(const auto longer, list_folders(context, access.store, below));
  for (const std::string& folder : longer) {
    if (auto name = DatasetName::from_key_component(folder)) found.push_back(std::move(*name));
  }
  return found;
}

struct DatasetStanding {
  bool exists = false;       // Some version is not aborted.
  bool established = false;  // Some version was published once: it exists for ever.
};

Result<DatasetStanding> dataset_standing(const RequestContext& context,
                                         const RegistryAccess& access, const DatasetName& dataset) {
  MR_ASSIGN_OR_RETURN(const auto ends,
                      list_log_ends(context, access, version_logs_prefix(dataset)));
  DatasetStanding standing;
  std::vector<LogPosition> positions;
  for (const auto& [prefix, end] : ends) {
    if (!version_of_log_prefix(prefix)) continue;
    MR_ASSIGN_OR_RETURN(const std::uint64_t number, end);
    // An aborted record has an even number, and the first is a reservation.
    standing.exists = standing.exists || number % 2 == 1;
    if (number > 1) positions.push_back({prefix, number});
  }
  MR_ASSIGN_OR_RETURN(const auto records, read_log_records(context, access, positions));
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!records[i]) return failure(records[i].error());
    const auto ref = version_of_log_prefix(positions[i].prefix);
    MR_ASSIGN_OR_RETURN(const VersionEntry entry, decode_version_entry(*ref, *records[i]));
    standing.exists = standing.exists || entry.state() != VersionState::kAborted;
    standing.established = standing.established || entry.facts.has_value();
  }
  return standing;
}

}  // namespace

Status check_dataset_name(const RequestContext& context, const RegistryAccess& access,
                          const DatasetName& dataset) {
  MR_ASSIGN_OR_RETURN(const auto overlapping, overlapping_datasets(context, access, dataset));
  for (const DatasetName& other : overlapping) {
    MR_ASSIGN_OR_RETURN(const auto standing, dataset_standing(context, access, other));
    if (!standing.exists) continue;
    // Beside a dataset that has been published the other can only be a reservation whose writer
    // has not looked yet, and will give up when it does.
    MR_ASSIGN_OR_RETURN(const auto own, dataset_standing(context, access, dataset));
    if (own.established && !standing.established) continue;
    return {StatusCode::kConflict,
            fmt::format("'{}' exists, so '{}' cannot be a dataset: no dataset's name may be the "
                        "beginning of another's. Choose another name",
                        other.text(), dataset.text())};
  }
  return {};
}

Status check_no_alias_has_name(const RequestContext& context, const RegistryAccess& access,
                               const VersionRef& ref) {
  MR_ASSIGN_OR_RETURN(AliasName name, AliasName::parse(ref.version.text()));
  MR_ASSIGN_OR_RETURN(const auto alias,
                      AliasLog(access, ref.dataset, std::move(name)).last(context));
  if (!alias || !alias->holds_name()) return {};
  return {StatusCode::kConflict,
          fmt::format("'{}' is an alias of {}, made by {}: choose another name for the version",
                      ref.version.text(), ref.dataset.text(), alias->who.describe())};
}

Status check_no_version_has_name(const RequestContext& context, const RegistryAccess& access,
                                 const DatasetName& dataset, const AliasName& alias) {
  MR_ASSIGN_OR_RETURN(VersionName name, VersionName::parse(alias.text()));
  MR_ASSIGN_OR_RETURN(const auto version,
                      VersionLog(access, {dataset, std::move(name)}).last(context));
  if (!version || version->state() == VersionState::kAborted) return {};
  return {StatusCode::kConflict,
          fmt::format("{} is a version: choose another name for the alias", version->ref.text())};
}

}  // namespace millrace
