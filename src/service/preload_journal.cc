#include "service/preload_journal.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/checked_line.h"
#include "base/log.h"
#include "base/status_names.h"
#include "dataset/log_record_fields.h"
#include "platform/small_file.h"

namespace millrace {
namespace {

using nlohmann::json;

constexpr std::string_view kPreloadHeader = "millrace-preload 1\n";
constexpr std::string_view kPreloadHeaderWord = "millrace-preload ";
// Paths are at most 64 of 4 KiB.
constexpr std::uint64_t kPreloadFileBytesMax = kMiB;
constexpr std::size_t kPreloadIdDigits = 12;

bool is_preload_id(std::string_view text) {
  return text.size() == kPreloadIdDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::uint64_t whole_seconds(Duration duration) {
  return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::seconds>(duration).count());
}

json preload_fields(const PreloadInfo& preload) {
  const PreloadRequest& request = preload.request;
  json fields{{"id", preload.id.value()},
              {"version", request.version.text()},
              {"paths", request.paths},
              {"rate", request.bytes_per_second_max},
              {"what_fits", request.what_fits ? 1 : 0},
              {"principal", request.holder.principal},
              {"run", request.holder.run},
              {"state", preload_state_name(preload.state)},
              {"created", record_time(preload.created)},
              {"files", preload.files},
              {"wanted_bytes", preload.fit.wanted_bytes},
              {"cached_bytes", preload.fit.cached_bytes},
              {"limit_bytes", preload.fit.limit_bytes},
              {"leased_bytes", preload.fit.leased_bytes},
              {"short_bytes", preload.fit.short_bytes},
              {"total_bytes", preload.bytes_total},
              {"problem", preload.problem}};
  if (request.lease) fields["lease_seconds"] = whole_seconds(*request.lease);
  if (preload.ended) fields["ended"] = record_time(*preload.ended);
  if (preload.code != StatusCode::kOk) fields["code"] = status_code_name(preload.code);
  return fields;
}

// Files of old do not say it, nor does a later one with a code that is not known here.
StatusCode failure_code(LogRecordFields& fields) {
  const std::optional<StatusCode> code =
      fields.has("code") ? parse_status_code(fields.text("code")) : std::nullopt;
  return code.value_or(StatusCode::kIoError);
}

}  // namespace

std::string encode_preload(const PreloadInfo& preload) {
  // A pattern may have bytes that are no UTF-8; then it would not match again, and is replaced.
  return std::string(kPreloadHeader) +
         checked_line(preload_fields(preload).dump(-1, ' ', false, json::error_handler_t::replace));
}

Result<PreloadInfo> decode_preload(std::string_view text, const std::string& name) {
  if (!text.starts_with(kPreloadHeader)) {
    const bool is_later = text.starts_with(kPreloadHeaderWord);
    return failure(is_later ? StatusCode::kUnsupported : StatusCode::kCorruption,
                   fmt::format("{} does not begin with '{}'", name,
                               kPreloadHeader.substr(0, kPreloadHeader.size() - 1)));
  }
  text.remove_prefix(kPreloadHeader.size());
  const std::optional<std::string_view> line =
      text.ends_with('\n') ? checked_text(text.substr(0, text.size() - 1)) : std::nullopt;
  const json object = line ? json::parse(*line, nullptr, false) : json();
  if (!object.is_object()) {
    return failure(StatusCode::kCorruption, fmt::format("{} does not fit its checksum", name));
  }
  Status status;
  LogRecordFields fields(object, name, status);
  const Result<VersionRef> version = VersionRef::parse(fields.text("version"));
  const std::optional<PreloadState> state = parse_preload_state(fields.text("state"));
  if (!version) fields.refuse("version", "is no NAME@VERSION");
  if (!state) fields.refuse("state", "is none");
  MR_RETURN_IF_ERROR(status);
  PreloadInfo preload{
      .id = PreloadId(fields.text("id")),
      .request = {.version = *version,
                  .paths = fields.text_list("paths"),
                  .bytes_per_second_max = fields.number("rate"),
                  .what_fits = fields.number("what_fits") != 0,
                  .holder = {.principal = fields.text("principal"), .run = fields.text("run")}},
      .state = *state,
      .created = fields.time("created"),
      .files = fields.number("files"),
      .bytes_total = fields.number("total_bytes"),
      .problem = fields.text("problem")};
  preload.fit.wanted_bytes = fields.number("wanted_bytes");
  if (fields.has("limit_bytes")) {
    preload.fit.cached_bytes = fields.number("cached_bytes");
    preload.fit.limit_bytes = fields.number("limit_bytes");
    preload.fit.leased_bytes = fields.number("leased_bytes");
  } else {
    preload.fit.limit_bytes = preload.fit.wanted_bytes;  // Of old: what did not fit was refused.
  }
  if (fields.has("short_bytes")) {
    preload.fit.short_bytes = fields.number("short_bytes");
  } else {
    const std::uint64_t taken = preload.fit.wanted_bytes + preload.fit.leased_bytes;
    preload.fit.short_bytes = taken - std::min(taken, preload.fit.limit_bytes);
  }
  if (fields.has("lease_seconds")) preload.request.lease = fields.seconds("lease_seconds");
  if (fields.has("ended")) preload.ended = fields.time("ended");
  if (preload.state == PreloadState::kFailed) preload.code = failure_code(fields);
  if (!is_preload_id(preload.id.value())) fields.refuse("id", "has not 12 hexadecimal digits");
  MR_RETURN_IF_ERROR(status);
  return preload;
}

Result<PreloadJournal> PreloadJournal::open(Disk& disk, std::string directory) {
  MR_RETURN_IF_ERROR(disk.make_directories(directory));
  return PreloadJournal(disk, std::move(directory));
}

std::string PreloadJournal::path_of(std::string_view name) const {
  return fmt::format("{}/{}", directory_, name);
}

Status PreloadJournal::save(const PreloadInfo& preload) {
  return replace_small_file(*disk_, path_of(preload.id.value()), encode_preload(preload));
}

Status PreloadJournal::remove(const PreloadId& id) {
  Status status = disk_->remove(path_of(id.value()));
  return status.code() == StatusCode::kNotFound ? Status() : status;
}

Result<std::vector<PreloadInfo>> PreloadJournal::load() {
  MR_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, disk_->list(directory_));
  std::vector<PreloadInfo> preloads;
  for (const DirectoryEntry& entry : entries) {
    const std::string path = path_of(entry.name);
    if (entry.name.ends_with(kUnfinishedSuffix)) {
      MR_RETURN_IF_ERROR(disk_->remove(path));
      continue;
    }
    const Result<std::string> text = read_small_file(*disk_, path, kPreloadFileBytesMax);
    Result<PreloadInfo> preload =
        text ? decode_preload(*text, path) : Result<PreloadInfo>(failure(text.error()));
    if (preload && preload->id.value() != entry.name) {
      preload = failure(StatusCode::kCorruption, fmt::format("{} has another's content", path));
    }
    if (!preload) {
      if (preload.error().code() != StatusCode::kCorruption) return failure(preload.error());
      log_error("a preload is damaged, and gone; it should be asked for again",
                {{"error", preload.error().to_string()}});
      MR_RETURN_IF_ERROR(disk_->remove(path));
      continue;
    }
    preloads.push_back(*std::move(preload));
  }
  std::ranges::sort(preloads, {}, [](const PreloadInfo& preload) {
    return std::pair(preload.created, preload.id);
  });
  return preloads;
}

}  // namespace millrace
