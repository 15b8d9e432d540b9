#include "dataset/log_record.h"

#include <cassert>

#include <fmt/format.h>

#include "base/checksum.h"
#include "dataset/log_record_fields.h"

namespace millrace {

namespace {

using Json = nlohmann::json;

constexpr const char* kChecksumField = "crc32c";
// Ours have three levels. The limit keeps writing the text of a parsed record from recursing deep.
constexpr int kRecordDepthMax = 8;

// Keys sorted, no spaces: the same text for the same record everywhere.
std::string canonical_record_text(const Json& record) {
  return record.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string record_checksum_text(std::string_view text) {
  return fmt::format("{:08x}", crc32c(as_bytes(text)));
}

Status damaged_record(const std::string& key, std::string_view why) {
  return {StatusCode::kCorruption, fmt::format("'{}' is damaged: {}", key, why)};
}

// Anything but an object when the text is no JSON, or JSON of too many levels.
Json parse_record_json(std::string_view text) {
  bool too_deep = false;
  Json record = Json::parse(
      text,
      [&too_deep](int depth, Json::parse_event_t, Json&) {
        too_deep = too_deep || depth > kRecordDepthMax;
        return !too_deep;
      },
      /*allow_exceptions=*/false);
  return too_deep ? Json() : record;
}

// Fields of the envelope, whose checksum has been found right.
Result<LogRecord> read_record_envelope(const Json& object, const std::string& key) {
  Status status;
  LogRecordFields fields(object, key, status);
  LogRecord record;
  record.key = fields.text("key");
  record.kind = fields.text("kind");
  record.number = fields.number("number");
  record.nonce = fields.nonce("nonce");
  record.time = fields.time("time");
  LogRecordFields who = fields.object("who");
  record.who = {.user = who.text("user"), .host = who.text("host"), .pid = who.number("pid")};
  fields.object("payload");
  MR_RETURN_IF_ERROR(status);
  if (record.key != key) {
    return failure(damaged_record(key, fmt::format("it is the record of '{}'", record.key)));
  }
  record.payload = object["payload"];
  return record;
}

}  // namespace

Result<std::string> encode_log_record(const LogRecord& record) {
  assert(record.payload.is_object());
  Json object = {
      {"format", kLogRecordFormat},
      {"key", record.key},
      {"kind", record.kind},
      {"number", record.number},
      {"nonce", record.nonce},
      {"time", record_time(record.time)},
      {"who", {{"user", record.who.user}, {"host", record.who.host}, {"pid", record.who.pid}}},
      {"payload", record.payload}};
  object[kChecksumField] = record_checksum_text(canonical_record_text(object));
  std::string text = canonical_record_text(object);
  if (text.size() <= kLogRecordBytesMax) return text;
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("the record for '{}' has {} bytes, at most {} are allowed: shorten "
                             "its notes, labels or list of parents",
                             record.key, text.size(), kLogRecordBytesMax));
}

Result<LogRecord> decode_log_record(std::string_view text, const std::string& key) {
  if (text.size() > kLogRecordBytesMax) {
    return failure(damaged_record(key, fmt::format("it has {} bytes", text.size())));
  }
  Json object = parse_record_json(text);
  if (!object.is_object()) return failure(damaged_record(key, "it is no JSON object"));
  Status status;
  LogRecordFields fields(object, key, status);
  const std::uint64_t format = fields.number("format");
  const std::string checksum = fields.text(kChecksumField);
  MR_RETURN_IF_ERROR(status);
  // First, so that a flipped bit is not taken for a later format: those keep these two fields.
  object.erase(kChecksumField);
  if (checksum != record_checksum_text(canonical_record_text(object))) {
    return failure(damaged_record(key, "its checksum does not match"));
  }
  if (format != kLogRecordFormat) {
    return failure(StatusCode::kUnsupported,
                   fmt::format("'{}' has format {}, this program reads {}: use a newer millrace",
                               key, format, kLogRecordFormat));
  }
  return read_record_envelope(object, key);
}

}  // namespace millrace
