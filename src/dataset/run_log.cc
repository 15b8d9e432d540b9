#include "dataset/run_log.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/time_format.h"
#include "dataset/append_log_listing.h"
#include "dataset/log_record_fields.h"
#include "dataset/registry_keys.h"

namespace millrace {

namespace {

constexpr std::string_view kEndedSuffix = ".end";

std::string run_key(const RunId& id, std::string_view file) {
  return fmt::format("{}{}/{}", kRunsPrefix, id.value(), file);
}

std::string uses_prefix(const Sha256Digest& content) {
  return fmt::format("{}{}/", kUsesPrefix, record_digest(content));
}

// The runs that a listing of a content's uses tells of, and whether each has ended.
Result<std::map<RunId, bool>> list_run_uses(const RequestContext& context, ObjectStore& store,
                                            const Sha256Digest& content) {
  std::map<RunId, bool> ended;
  const std::string prefix = uses_prefix(content);
  MR_RETURN_IF_ERROR(
      for_each_object(context, store, prefix, [&](const ObjectInfo& object) -> Status {
        std::string_view name = std::string_view(object.key.value()).substr(prefix.size());
        const bool end = name.ends_with(kEndedSuffix);
        if (end) name.remove_suffix(kEndedSuffix.size());
        if (const auto id = parse_run_id(name)) ended[*id] = ended[*id] || end;
        return {};
      }));
  return ended;
}

}  // namespace

bool LiveRun::uses(const VersionRef& ref) const {
  return std::ranges::any_of(versions, [&](const RunUse& use) { return use.ref == ref; });
}

std::vector<std::string> RunLog::use_keys(const RunRecording& recording) const {
  std::set<std::string> keys;  // Two versions may have the same content.
  for (const RunUse& use : recording.description.uses)
    keys.insert(uses_prefix(use.content_digest) + recording.id.value());
  return {keys.begin(), keys.end()};
}

Status RunLog::put(const RequestContext& context, RunRecording& recording, const std::string& key,
                   std::string kind, std::uint64_t number, nlohmann::json payload) const {
  const LogRecord record{.key = key,
                         .kind = std::move(kind),
                         .number = number,
                         .nonce = access_.random.token(),
                         .time = access_.clock.wall_now(),
                         .who = access_.writer,
                         .payload = std::move(payload)};
  MR_ASSIGN_OR_RETURN(std::string text, encode_log_record(record));
  const auto stored =
      access_.store.put(context, ObjectKey(key), Slice::from_string(std::move(text)), {});
  if (stored) return {};
  if (stored.error() != StatusCode::kPermissionDenied) return stored.error();
  recording.warning = Status(
      StatusCode::kPermissionDenied,
      fmt::format("the run '{}' is not fully recorded, because {} refuses writes: {}",
                  recording.description.name, access_.store.describe(), stored.error().message()));
  return {};
}

Result<std::optional<RunLog::StoredRecord>> RunLog::read(const RequestContext& context,
                                                         const std::string& key) const {
  const auto found = access_.store.get(context, log_record_request(key));
  if (!found && found.error() == StatusCode::kNotFound) return std::nullopt;
  if (!found && found.error() == StatusCode::kInvalidArgument) {
    return failure(StatusCode::kCorruption,
                   fmt::format("'{}' is no record: {}", key, found.error().message()));
  }
  if (!found) return failure(found.error());
  MR_ASSIGN_OR_RETURN(LogRecord record, decode_log_record(found->data.text(), key));
  const WallTime written = std::max(record.time, found->info.modified);
  return StoredRecord{.record = std::move(record), .written = written};
}

Result<RunRecording> RunLog::start(const RequestContext& context,
                                   RunDescription description) const {
  MR_RETURN_IF_ERROR(check_run(description));
  RunRecording recording{
      .id = RunId(fmt::format("{}-{}", format_iso8601_basic(access_.clock.wall_now()),
                              access_.random.token().substr(0, 16))),
      .description = std::move(description)};
  const nlohmann::json payload = run_payload(recording.description);
  MR_RETURN_IF_ERROR(
      put(context, recording, run_key(recording.id, "start.json"), "run_started", 1, payload));
  recording.recorded = recording.warning.ok();
  // The heartbeat comes before the marks: what a mark leads to must not look dead.
  MR_RETURN_IF_ERROR(heartbeat(context, recording));
  if (!recording.recorded) return recording;
  for (const std::string& key : use_keys(recording))
    MR_RETURN_IF_ERROR(put(context, recording, key, "run_use", 1, payload));
  return recording;
}

Status RunLog::heartbeat(const RequestContext& context, RunRecording& recording) const {
  if (!recording.recorded) return {};
  return put(context, recording, run_key(recording.id, "heartbeat.json"), "run_heartbeat",
             ++recording.heartbeats, run_payload(recording.description));
}

Status RunLog::finish(const RequestContext& context, RunRecording& recording,
                      std::uint64_t exit_code) const {
  if (!recording.recorded) return {};
  const nlohmann::json payload =
      run_end_payload({.exit_code = exit_code, .observed = recording.observed});
  MR_RETURN_IF_ERROR(
      put(context, recording, run_key(recording.id, "end.json"), "run_ended", 1, payload));
  for (const std::string& key : use_keys(recording)) {
    MR_RETURN_IF_ERROR(
        put(context, recording, key + std::string(kEndedSuffix), "run_ended", 1, payload));
  }
  return {};
}

Result<std::vector<RunId>> RunLog::ids(const RequestContext& context) const {
  MR_ASSIGN_OR_RETURN(const auto folders,
                      list_folders(context, access_.store, std::string(kRunsPrefix)));
  std::vector<RunId> ids;
  for (const std::string& folder : folders) {
    if (auto id = parse_run_id(folder)) ids.push_back(std::move(*id));
  }
  std::ranges::reverse(ids);
  return ids;
}

Result<RunEntry> RunLog::run(const RequestContext& context, const RunId& id) const {
  MR_ASSIGN_OR_RETURN(const auto start, read(context, run_key(id, "start.json")));
  if (!start) {
    return failure(StatusCode::kNotFound,
                   fmt::format("no run '{}': 'millrace run ls' lists them", id.value()));
  }
  RunEntry entry{.id = id,
                 .who = start->record.who,
                 .started = start->record.time,
                 .heartbeat = start->written};
  MR_ASSIGN_OR_RETURN(entry.description, read_run_payload(start->record));
  MR_ASSIGN_OR_RETURN(const auto beat, read(context, run_key(id, "heartbeat.json")));
  if (beat) entry.heartbeat = beat->written;
  MR_ASSIGN_OR_RETURN(const auto end, read(context, run_key(id, "end.json")));
  if (end) {
    entry.ended = end->record.time;
    MR_ASSIGN_OR_RETURN(RunEnd how, read_run_end_payload(end->record));
    entry.exit_code = how.exit_code;
    entry.observed = std::move(how.observed);
  }
  return entry;
}

Result<std::vector<RunId>> RunLog::users(const RequestContext& context,
                                         const Sha256Digest& content) const {
  MR_ASSIGN_OR_RETURN(const auto runs, list_run_uses(context, access_.store, content));
  std::vector<RunId> ids;
  for (const auto& [id, ended] : runs)
    ids.push_back(id);
  std::ranges::reverse(ids);
  return ids;
}

Result<std::optional<LiveRun>> RunLog::live_run(const RequestContext& context,
                                                const RunId& id) const {
  MR_ASSIGN_OR_RETURN(const auto beat, read(context, run_key(id, "heartbeat.json")));
  if (!beat) return std::nullopt;
  MR_ASSIGN_OR_RETURN(RunDescription description, read_run_payload(beat->record));
  if (!heartbeat_is_fresh(beat->written, description.heartbeat_period, access_.clock.wall_now()))
    return std::nullopt;
  // It may have been killed between its end and the marks of it.
  const auto end = access_.store.head(context, ObjectKey(run_key(id, "end.json")));
  if (end) return std::nullopt;
  if (end.error() != StatusCode::kNotFound) return failure(end.error());
  return LiveRun{.id = id,
                 .name = std::move(description.name),
                 .who = beat->record.who,
                 .heartbeat = beat->written,
                 .versions = std::move(description.uses)};
}

Result<std::vector<LiveRun>> RunLog::live_users(const RequestContext& context,
                                                const Sha256Digest& content) const {
  MR_ASSIGN_OR_RETURN(const auto runs, list_run_uses(context, access_.store, content));
  std::vector<LiveRun> live;
  for (const auto& [id, ended] : runs) {
    if (ended) continue;
    MR_ASSIGN_OR_RETURN(auto run, live_run(context, id));
    if (run) live.push_back(std::move(*run));
  }
  return live;
}

}  // namespace millrace
