#include "dataset/version_log.h"

#include <fmt/format.h>

#include "dataset/registry_keys.h"
#include "dataset/version_log_payload.h"

namespace millrace {

namespace {

constexpr std::string_view kVersionsFolder = "/versions/";
// Each round is lost to a writer that got ahead, so this many are not seen in practice.
constexpr int kAdvanceRoundsMax = 100;
// Of a version that was published, and to which nothing has happened since: behind its reservation.
constexpr std::uint64_t kPublishedRecord = 2;

}  // namespace

VersionWork VersionEntry::open_work() const {
  if (event == VersionEvent::kReserved) return {.nonce = nonce, .since = since};
  return facts && facts->repacking ? *facts->repacking : VersionWork();
}

std::string version_logs_prefix(const DatasetName& dataset) {
  return fmt::format("{}{}{}", kDatasetsPrefix, dataset.key_component(), kVersionsFolder);
}

std::string version_log_prefix(const VersionRef& ref) {
  return version_logs_prefix(ref.dataset) + ref.version.text() + "/";
}

std::optional<VersionRef> version_of_log_prefix(const std::string& prefix) {
  std::string_view rest = prefix;
  if (!rest.starts_with(kDatasetsPrefix) || !rest.ends_with('/')) return std::nullopt;
  rest.remove_prefix(kDatasetsPrefix.size());
  rest.remove_suffix(1);
  const std::size_t folder = rest.find('/');
  if (folder == std::string_view::npos || !rest.substr(folder).starts_with(kVersionsFolder))
    return std::nullopt;
  auto dataset = DatasetName::from_key_component(rest.substr(0, folder));
  auto version = VersionName::parse(rest.substr(folder + kVersionsFolder.size()));
  if (!dataset || !version) return std::nullopt;
  return VersionRef{std::move(*dataset), std::move(*version)};
}

Result<VersionEntry> decode_version_entry(const VersionRef& ref, const LogRecord& record) {
  const auto event = version_event_from_name(record.kind);
  if (!event) {
    return failure(StatusCode::kCorruption,
                   fmt::format("'{}' is damaged: no record of a version is of the kind '{}'",
                               record.key, record.kind));
  }
  VersionEntry entry{.ref = ref,
                     .event = *event,
                     .number = record.number,
                     .nonce = record.nonce,
                     .since = record.time,
                     .who = record.who};
  MR_RETURN_IF_ERROR(read_version_payload(record, entry));
  return entry;
}

VersionLog::VersionLog(const RegistryAccess& access, VersionRef ref)
    : access_(access), ref_(std::move(ref)), log_(access, version_log_prefix(ref_)) {}

Result<std::optional<VersionEntry>> VersionLog::last(const RequestContext& context) const {
  MR_ASSIGN_OR_RETURN(const auto record, log_.last(context, kPublishedRecord));
  if (!record) return std::nullopt;
  MR_ASSIGN_OR_RETURN(VersionEntry entry, decode_version_entry(ref_, *record));
  return entry;
}

Result<std::vector<VersionEntry>> VersionLog::history(const RequestContext& context) const {
  MR_ASSIGN_OR_RETURN(const auto records, log_.records(context));
  std::vector<VersionEntry> entries;
  for (const LogRecord& record : records) {
    MR_ASSIGN_OR_RETURN(VersionEntry entry, decode_version_entry(ref_, record));
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<VersionLog::Outcome> VersionLog::append(const RequestContext& context,
                                               const VersionEntry& next) const {
  MR_ASSIGN_OR_RETURN(const Appended appended,
                      log_.append(context, next.number, std::string(version_event_name(next.event)),
                                  version_payload(next), next.nonce));
  MR_ASSIGN_OR_RETURN(VersionEntry entry, decode_version_entry(ref_, appended.record));
  return Outcome{.ours = appended.ours, .entry = std::move(entry)};
}

Result<VersionEntry> VersionLog::advance(const RequestContext& context, const Step& step) const {
  for (int round = 0; round < kAdvanceRoundsMax; ++round) {
    MR_ASSIGN_OR_RETURN(std::optional<VersionEntry> now, last(context));
    if (!now || !now->facts) {
      return failure(StatusCode::kNotFound,
                     fmt::format("{} has never been published: 'millrace version ls {}' lists "
                                 "what there is",
                                 ref_.text(), ref_.dataset.text()));
    }
    now->reason.clear();
    now->nonce = access_.random.token();
    ++now->number;
    MR_RETURN_IF_ERROR(step(*now));
    MR_ASSIGN_OR_RETURN(Outcome outcome, append(context, *now));
    if (outcome.ours) return std::move(outcome.entry);
  }
  return failure(StatusCode::kConflict,
                 fmt::format("others keep changing {}: try again", ref_.text()));
}

}  // namespace millrace
