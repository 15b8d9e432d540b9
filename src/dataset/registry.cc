#include "dataset/registry.h"

#include <fmt/format.h>

#include "base/time_format.h"
#include "dataset/append_log_listing.h"
#include "dataset/registry_keys.h"

namespace millrace {

namespace {

Status no_such_version(const VersionRef& ref, const ObjectStore& store) {
  return {
      StatusCode::kNotFound,
      fmt::format("{} has no version or alias '{}' in {}: 'millrace version ls {}' lists them",
                  ref.dataset.text(), ref.version.text(), store.describe(), ref.dataset.text())};
}

// Why a version that is there cannot be read.
Status check_version_readable(const VersionEntry& entry) {
  if (entry.readable()) return {};
  const std::string ref = entry.ref.text();
  const std::string by =
      fmt::format("at {} by {}", format_iso8601(entry.since), entry.who.describe());
  switch (entry.state()) {
    case VersionState::kReserved:
      return {StatusCode::kNotFound,
              fmt::format("{} is not published yet: it was begun {}", ref, by)};
    case VersionState::kRemoved:
      return {StatusCode::kNotFound,
              fmt::format("{} was removed {}; until {} 'millrace version restore {}' is sure to "
                          "bring it back",
                          ref, by, format_iso8601(entry.removal->restorable_until()), ref)};
    default:
      return {StatusCode::kNotFound,
              fmt::format("{} was {} {}", ref, version_state_name(entry.state()), by)};
  }
}

}  // namespace

Result<std::vector<DatasetName>> Registry::datasets(const RequestContext& context) const {
  MR_ASSIGN_OR_RETURN(const auto folders,
                      list_folders(context, access_.store, std::string(kDatasetsPrefix)));
  std::vector<DatasetName> names;
  for (const std::string& folder : folders) {
    if (auto name = DatasetName::from_key_component(folder)) names.push_back(std::move(*name));
  }
  return names;
}

Result<std::vector<VersionListing>> Registry::list_versions(const RequestContext& context,
                                                            const std::string& prefix,
                                                            bool open_only) const {
  MR_ASSIGN_OR_RETURN(const auto ends, list_log_ends(context, access_, prefix));
  std::vector<VersionListing> listings;
  std::vector<std::size_t> read;  // Which of the listings the positions are for.
  std::vector<LogPosition> positions;
  for (const auto& [log, end] : ends) {
    auto ref = version_of_log_prefix(log);
    // The second record ends the first reservation, and most logs have no third.
    if (!ref || (open_only && end && *end == 2)) continue;
    if (end) {
      read.push_back(listings.size());
      positions.push_back({log, *end});
    }
    listings.push_back(
        {.ref = *std::move(ref),
         .entry = failure(end ? Status(StatusCode::kInternal, "it was not read") : end.error())});
  }
  MR_ASSIGN_OR_RETURN(const auto records, read_log_records(context, access_, positions));
  for (std::size_t i = 0; i < records.size(); ++i) {
    VersionListing& listing = listings[read[i]];
    listing.entry = records[i] ? decode_version_entry(listing.ref, *records[i])
                               : Result<VersionEntry>(failure(records[i].error()));
  }
  return listings;
}

Result<std::vector<VersionListing>> Registry::versions(const RequestContext& context,
                                                       const DatasetName& dataset) const {
  return list_versions(context, version_logs_prefix(dataset), false);
}

Result<std::vector<VersionListing>> Registry::every_version(const RequestContext& context) const {
  return list_versions(context, std::string(kDatasetsPrefix), false);
}

Result<std::vector<VersionEntry>> Registry::open_reservations(const RequestContext& context) const {
  MR_ASSIGN_OR_RETURN(auto listings, list_versions(context, std::string(kDatasetsPrefix), true));
  std::vector<VersionEntry> open;
  for (VersionListing& listing : listings) {
    if (!listing.entry) return failure(listing.entry.error());
    if (!listing.entry->open_work().nonce.empty()) open.push_back(std::move(*listing.entry));
  }
  return open;
}

Result<VersionEntry> Registry::version(const RequestContext& context, const VersionRef& ref) const {
  MR_ASSIGN_OR_RETURN(auto entry, VersionLog(access_, ref).last(context));
  if (!entry) return failure(no_such_version(ref, access_.store));
  return std::move(*entry);
}

Result<std::vector<VersionEntry>> Registry::history(const RequestContext& context,
                                                    const VersionRef& ref) const {
  MR_ASSIGN_OR_RETURN(auto entries, VersionLog(access_, ref).history(context));
  if (entries.empty()) return failure(no_such_version(ref, access_.store));
  return entries;
}

Result<VersionEntry> Registry::resolve(const RequestContext& context, const VersionRef& ref) const {
  MR_ASSIGN_OR_RETURN(auto direct, VersionLog(access_, ref).last(context));
  if (direct && direct->state() != VersionState::kAborted) {
    MR_RETURN_IF_ERROR(check_version_readable(*direct));
    return std::move(*direct);
  }
  MR_ASSIGN_OR_RETURN(AliasName name, AliasName::parse(ref.version.text()));
  MR_ASSIGN_OR_RETURN(const auto alias, AliasLog(access_, ref.dataset, name).last(context));
  if (!alias || !alias->target) return failure(no_such_version(ref, access_.store));
  MR_ASSIGN_OR_RETURN(VersionEntry entry, version(context, {ref.dataset, *alias->target}));
  MR_RETURN_IF_ERROR(
      check_version_readable(entry).with_context(fmt::format("the alias {}", ref.text())));
  return entry;
}

}  // namespace millrace
