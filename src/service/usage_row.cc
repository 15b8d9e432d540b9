#include "service/usage_row.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/checked_line.h"
#include "base/log.h"
#include "dataset/log_record_fields.h"

namespace millrace {
namespace {

using nlohmann::json;

constexpr std::string_view kUsageHeader = "millrace-usage 1\n";
constexpr std::string_view kUsageHeaderWord = "millrace-usage ";

std::string usage_line(const UsageRow& row) {
  json fields{{"version", row.key.version},
              {"principal", row.key.principal},
              {"run", row.key.run},
              {"read_bytes", row.counts.read_bytes},
              {"reads", row.counts.reads},
              {"fetches", row.counts.fetches},
              {"fetched_bytes", row.counts.fetched_bytes},
              {"handed_out_files", row.counts.handed_out_files},
              {"handed_out_bytes", row.counts.handed_out_bytes},
              {"last", record_time(row.last)}};
  if (row.is_named) fields["named"] = true;
  return checked_line(fields.dump(-1, ' ', false, json::error_handler_t::replace));
}

Result<UsageRow> parse_usage_line(std::string_view line, const std::string& path) {
  const std::optional<std::string_view> text = checked_text(line);
  const json object = text ? json::parse(*text, nullptr, false) : json();
  if (!object.is_object()) {
    return failure(StatusCode::kCorruption,
                   fmt::format("a line of {} does not fit its checksum", path));
  }
  Status status;
  LogRecordFields fields(object, path, status);
  UsageRow row{.key = {.version = fields.text("version"),
                       .principal = fields.text("principal"),
                       .run = fields.text("run")},
               .counts = {.read_bytes = fields.number("read_bytes"),
                          .reads = fields.number("reads"),
                          // Files of before have none.
                          .fetches = fields.has("fetches") ? fields.number("fetches") : 0,
                          .fetched_bytes = fields.number("fetched_bytes"),
                          .handed_out_files = fields.number("handed_out_files"),
                          .handed_out_bytes = fields.number("handed_out_bytes")},
               .last = fields.time("last"),
               .is_named = fields.has("named") && fields.flag("named")};
  MR_RETURN_IF_ERROR(status);
  return row;
}

}  // namespace

UsageCounts& UsageCounts::operator+=(const UsageCounts& other) {
  read_bytes += other.read_bytes;
  reads += other.reads;
  fetches += other.fetches;
  fetched_bytes += other.fetched_bytes;
  handed_out_files += other.handed_out_files;
  handed_out_bytes += other.handed_out_bytes;
  return *this;
}

std::string encode_usage(const std::vector<UsageRow>& rows) {
  std::string text(kUsageHeader);
  for (const UsageRow& row : rows)
    text += usage_line(row);
  return text;
}

Result<std::vector<UsageRow>> decode_usage(std::string_view text, const std::string& path) {
  if (!text.starts_with(kUsageHeader)) {
    const bool is_later = text.starts_with(kUsageHeaderWord);
    return failure(is_later ? StatusCode::kUnsupported : StatusCode::kCorruption,
                   fmt::format("{} does not begin with '{}': it was written by another version of "
                               "Millrace, or is something else; move it away",
                               path, kUsageHeader.substr(0, kUsageHeader.size() - 1)));
  }
  text.remove_prefix(kUsageHeader.size());
  std::vector<UsageRow> rows;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    Result<UsageRow> row = parse_usage_line(text.substr(0, end), path);
    if (row) {
      rows.push_back(*std::move(row));
    } else {
      log_error("some of who read what is lost", {{"error", row.error().to_string()}});
    }
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return rows;
}

}  // namespace millrace
