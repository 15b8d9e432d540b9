#include "dataset/alias_log.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "dataset/log_record_fields.h"
#include "dataset/registry_keys.h"

namespace millrace {

namespace {

constexpr std::array<std::string_view, 4> kAliasEventNames = {"claimed", "set", "rolled_back",
                                                              "withdrawn"};

nlohmann::json alias_payload(const AliasEntry& entry) {
  nlohmann::json payload = {{"position", entry.position}, {"below", entry.below}};
  if (entry.target) payload["target"] = entry.target->text();
  if (entry.previous) payload["previous"] = entry.previous->text();
  return payload;
}

std::optional<VersionName> read_alias_version(LogRecordFields& fields, const char* name) {
  if (!fields.has(name)) return std::nullopt;
  auto version = VersionName::parse(fields.text(name));
  if (version) return std::move(*version);
  fields.refuse(name, "is no name of a version");
  return std::nullopt;
}

}  // namespace

std::string_view alias_event_name(AliasEvent event) {
  return kAliasEventNames[static_cast<std::size_t>(event)];
}

std::string alias_logs_prefix(const DatasetName& dataset) {
  return fmt::format("{}{}/aliases/", kDatasetsPrefix, dataset.key_component());
}

Result<AliasEntry> decode_alias_entry(const DatasetName& dataset, const AliasName& alias,
                                      const LogRecord& record) {
  const auto kind = std::ranges::find(kAliasEventNames, record.kind);
  if (kind == kAliasEventNames.end()) {
    return failure(StatusCode::kCorruption,
                   fmt::format("'{}' is damaged: no record of an alias is of the kind '{}'",
                               record.key, record.kind));
  }
  Status status;
  LogRecordFields fields(record.payload, record.key, status);
  AliasEntry entry{.dataset = dataset,
                   .alias = alias,
                   .event = static_cast<AliasEvent>(kind - kAliasEventNames.begin()),
                   .number = record.number,
                   .nonce = record.nonce,
                   .time = record.time,
                   .who = record.who,
                   .target = read_alias_version(fields, "target"),
                   .previous = read_alias_version(fields, "previous"),
                   .position = fields.number("position"),
                   .below = fields.number("below")};
  const bool points = entry.event == AliasEvent::kSet || entry.event == AliasEvent::kRolledBack;
  if (points != entry.target.has_value()) fields.refuse("target", "does not go with its kind");
  if (entry.position > entry.number || (points && entry.position == 0))
    fields.refuse("position", "is no earlier record");
  if (entry.below != 0 && entry.below >= entry.position)
    fields.refuse("below", "is no earlier record");
  MR_RETURN_IF_ERROR(status);
  return entry;
}

AliasLog::AliasLog(const RegistryAccess& access, DatasetName dataset, AliasName alias)
    : access_(access),
      dataset_(std::move(dataset)),
      alias_(std::move(alias)),
      log_(access, alias_logs_prefix(dataset_) + alias_.text() + "/") {}

Result<std::optional<AliasEntry>> AliasLog::last(const RequestContext& context) const {
  MR_ASSIGN_OR_RETURN(const auto record, log_.last(context));
  if (!record) return std::nullopt;
  MR_ASSIGN_OR_RETURN(AliasEntry found, decode_alias_entry(dataset_, alias_, *record));
  return found;
}

Result<AliasEntry> AliasLog::entry(const RequestContext& context, std::uint64_t number) const {
  MR_ASSIGN_OR_RETURN(const LogRecord record, log_.record(context, number));
  return decode_alias_entry(dataset_, alias_, record);
}

Result<std::vector<AliasEntry>> AliasLog::history(const RequestContext& context) const {
  MR_ASSIGN_OR_RETURN(const auto records, log_.records(context));
  std::vector<AliasEntry> entries;
  for (const LogRecord& record : records) {
    MR_ASSIGN_OR_RETURN(AliasEntry found, decode_alias_entry(dataset_, alias_, record));
    entries.push_back(std::move(found));
  }
  return entries;
}

Result<AliasLog::Outcome> AliasLog::append(const RequestContext& context,
                                           const AliasEntry& next) const {
  MR_ASSIGN_OR_RETURN(const Appended appended,
                      log_.append(context, next.number, std::string(alias_event_name(next.event)),
                                  alias_payload(next), access_.random.token()));
  MR_ASSIGN_OR_RETURN(AliasEntry there, decode_alias_entry(dataset_, alias_, appended.record));
  return Outcome{.ours = appended.ours, .entry = std::move(there)};
}

}  // namespace millrace
