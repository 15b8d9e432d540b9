#include "dataset/run_record.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/time_format.h"
#include "dataset/log_record_fields.h"

namespace millrace {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kRunTimeBytes = 16;    // "20260102T030405Z"
constexpr std::size_t kRunSuffixBytes = 16;  // Hexadecimal digits.

// As many arguments as fit, and "..." for the rest.
Json command_payload(const std::vector<std::string>& command_line) {
  Json command = Json::array();
  std::size_t bytes = 0;
  for (const std::string& argument : command_line) {
    bytes += argument.size() + 1;
    if (bytes > kRunCommandBytesMax) {
      command.push_back("...");
      break;
    }
    command.push_back(argument);
  }
  return command;
}

}  // namespace

Result<RunId> parse_run_id(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() == kRunTimeBytes + 1 + kRunSuffixBytes && text[kRunTimeBytes] == '-' &&
      parse_iso8601_basic(text.substr(0, kRunTimeBytes)) &&
      std::ranges::all_of(text.substr(kRunTimeBytes + 1), is_digit)) {
    return RunId(std::string(text));
  }
  return failure(
      StatusCode::kInvalidArgument,
      fmt::format("'{}' is no id of a run: 'millrace run ls' lists them", text.substr(0, 64)));
}

bool heartbeat_is_fresh(WallTime heartbeat, Duration period, WallTime now) {
  // Not as a difference: a heartbeat may claim any time, and the difference of two overflows.
  return heartbeat > now - kHeartbeatPeriodsMax * period;
}

bool RunEntry::live(WallTime now) const {
  return !ended && heartbeat_is_fresh(heartbeat, description.heartbeat_period, now);
}

Status check_run(const RunDescription& description) {
  MR_RETURN_IF_ERROR(check_name_component(description.name, "run"));
  if (description.uses.size() > kRunUsesMax) {
    return {StatusCode::kInvalidArgument, fmt::format("a run uses at most {} versions, not {}",
                                                      kRunUsesMax, description.uses.size())};
  }
  if (description.heartbeat_period >= std::chrono::seconds(1) &&
      description.heartbeat_period <= std::chrono::days(1)) {
    return {};
  }
  return {StatusCode::kInvalidArgument, "the heartbeat of a run comes every 1s to 1d"};
}

nlohmann::json run_payload(const RunDescription& description) {
  Json uses = Json::array();
  for (const RunUse& use : description.uses) {
    uses.push_back(
        {{"version", use.ref.text()}, {"content_digest", record_digest(use.content_digest)}});
  }
  const auto period = std::chrono::floor<std::chrono::seconds>(description.heartbeat_period);
  return {{"name", description.name},
          {"uses", std::move(uses)},
          {"git_commit", description.git_commit},
          {"command_line", command_payload(description.command_line)},
          {"period_seconds", static_cast<std::uint64_t>(period.count())}};
}

Result<RunDescription> read_run_payload(const LogRecord& record) {
  Status status;
  LogRecordFields fields(record.payload, record.key, status);
  RunDescription description{.name = fields.text("name"),
                             .git_commit = fields.text("git_commit"),
                             .command_line = fields.text_list("command_line"),
                             .heartbeat_period = fields.seconds("period_seconds")};
  if (description.heartbeat_period > std::chrono::days(1))
    fields.refuse("period_seconds", "is longer than a day");
  for (LogRecordFields& use : fields.object_list("uses")) {
    auto ref = VersionRef::parse(use.text("version"));
    if (ref) {
      description.uses.push_back(
          {.ref = std::move(*ref), .content_digest = use.digest("content_digest")});
    } else {
      fields.refuse("uses", "has an entry that is no NAME@VERSION");
    }
  }
  MR_RETURN_IF_ERROR(status);
  return description;
}

nlohmann::json run_end_payload(const RunEnd& end) {
  Json payload = {{"exit_code", end.exit_code}};
  Json reads = Json::array();
  for (const RunRead& read : end.observed.reads) {
    if (reads.size() == kRunReadsMax) break;
    reads.push_back({{"version", read.version},
                     {"read_bytes", read.read_bytes},
                     {"reads", read.reads},
                     {"fetches", read.fetches},
                     {"fetched_bytes", read.fetched_bytes},
                     {"handed_out_files", read.handed_out_files}});
  }
  if (!reads.empty()) payload["observed"] = std::move(reads);
  Json failures = Json::array();
  for (const RunFailure& failed : end.observed.failures) {
    if (failures.size() == kRunFailuresMax) break;
    failures.push_back({{"dataset", failed.dataset},
                        {"sample", failed.sample},
                        {"key", failed.key},
                        {"action", failed.action},
                        {"error", failed.error},
                        {"times", failed.times}});
  }
  if (!failures.empty()) payload["failures"] = std::move(failures);
  return payload;
}

Result<RunEnd> read_run_end_payload(const LogRecord& record) {
  Status status;
  LogRecordFields fields(record.payload, record.key, status);
  RunEnd end{.exit_code = fields.number("exit_code")};
  if (fields.has("observed")) {
    for (LogRecordFields& read : fields.object_list("observed")) {
      end.observed.reads.push_back({.version = read.text("version"),
                                    .read_bytes = read.number("read_bytes"),
                                    .reads = read.number("reads"),
                                    // Records of before have none.
                                    .fetches = read.has("fetches") ? read.number("fetches") : 0,
                                    .fetched_bytes = read.number("fetched_bytes"),
                                    .handed_out_files = read.number("handed_out_files")});
    }
  }
  if (fields.has("failures")) {
    for (LogRecordFields& failed : fields.object_list("failures")) {
      end.observed.failures.push_back({.dataset = failed.text("dataset"),
                                       .sample = failed.number("sample"),
                                       .key = failed.text("key"),
                                       .action = failed.text("action"),
                                       .error = failed.text("error"),
                                       .times = failed.number("times")});
    }
  }
  MR_RETURN_IF_ERROR(status);
  return end;
}

}  // namespace millrace
