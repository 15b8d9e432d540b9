#include "dataset/log_record_fields.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/time_format.h"
#include "platform/digest_text.h"

namespace millrace {

namespace {

using Json = nlohmann::json;

// 95 years: added to any time of this century it still fits into a WallTime.
constexpr std::uint64_t kRecordSecondsMax = 3'000'000'000;

constexpr std::size_t kRecordNonceDigits = 32;

const Json& empty_record_object() {
  static const Json empty = Json::object();
  return empty;
}

}  // namespace

LogRecordFields::LogRecordFields(const Json& object, std::string key, Status& status)
    : object_(object.is_object() ? object : empty_record_object()),
      key_(std::move(key)),
      status_(status) {}

bool LogRecordFields::has(const char* name) const {
  const auto found = object_.find(name);
  return found != object_.end() && !found->is_null();
}

void LogRecordFields::refuse(const char* name, std::string_view why) {
  if (!status_.ok()) return;
  status_ = {StatusCode::kCorruption, fmt::format("'{}' is damaged: its '{}' {}", key_, name, why)};
}

const Json* LogRecordFields::find(const char* name) {
  if (!status_.ok()) return nullptr;
  const auto found = object_.find(name);
  if (found != object_.end()) return &*found;
  refuse(name, "is missing");
  return nullptr;
}

std::string LogRecordFields::text(const char* name) {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  refuse(name, "is no text");
  return {};
}

std::uint64_t LogRecordFields::number(const char* name) {
  const Json* value = find(name);
  if (value == nullptr) return 0;
  if (value->is_number_unsigned()) return value->get<std::uint64_t>();
  refuse(name, "is no natural number");
  return 0;
}

bool LogRecordFields::flag(const char* name) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  refuse(name, "is neither true nor false");
  return false;
}

WallTime LogRecordFields::time(const char* name) {
  const std::string value = text(name);
  if (!status_.ok()) return {};
  if (const auto time = parse_iso8601(value)) return *time;
  refuse(name, "is no time");
  return {};
}

Sha256Digest LogRecordFields::digest(const char* name) {
  const std::string value = text(name);
  if (!status_.ok()) return {};
  const std::optional<Sha256Digest> digest = parse_sha256(value);
  if (!digest) refuse(name, "is no digest of 64 hexadecimal digits");
  return digest.value_or(Sha256Digest());
}

Duration LogRecordFields::seconds(const char* name) {
  const std::uint64_t value = number(name);
  if (value <= kRecordSecondsMax) return std::chrono::seconds(value);
  refuse(name, "is too long a time");
  return {};
}

std::string LogRecordFields::nonce(const char* name) {
  std::string value = text(name);
  if (!status_.ok()) return {};
  if (is_record_nonce(value)) return value;
  refuse(name, "is no nonce of 32 hexadecimal digits");
  return {};
}

std::map<std::string, std::string> LogRecordFields::text_map(const char* name) {
  std::map<std::string, std::string> result;
  const Json* value = find(name);
  if (value == nullptr) return result;
  if (!value->is_object()) {
    refuse(name, "is no object");
    return result;
  }
  for (const auto& [label, text] : value->items()) {
    if (text.is_string()) {
      result.emplace(label, text.get<std::string>());
    } else {
      refuse(name, "has a value that is no text");
    }
  }
  return result;
}

std::vector<std::string> LogRecordFields::text_list(const char* name) {
  std::vector<std::string> result;
  const Json* value = find(name);
  if (value == nullptr) return result;
  if (!value->is_array()) {
    refuse(name, "is no list");
    return result;
  }
  for (const Json& text : *value) {
    if (text.is_string()) {
      result.push_back(text.get<std::string>());
    } else {
      refuse(name, "has an entry that is no text");
    }
  }
  return result;
}

LogRecordFields LogRecordFields::object(const char* name) {
  const Json* value = find(name);
  if (value != nullptr && !value->is_object()) refuse(name, "is no object");
  return {value == nullptr ? empty_record_object() : *value, key_, status_};
}

std::vector<LogRecordFields> LogRecordFields::object_list(const char* name) {
  std::vector<LogRecordFields> result;
  const Json* value = find(name);
  if (value == nullptr) return result;
  if (!value->is_array()) refuse(name, "is no list");
  for (const Json& entry : *value) {
    if (!entry.is_object()) refuse(name, "has an entry that is no object");
    result.emplace_back(entry, key_, status_);
  }
  return result;
}

bool is_record_nonce(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == kRecordNonceDigits && std::ranges::all_of(text, is_digit);
}

std::string record_time(WallTime time) { return format_iso8601(time); }

std::string record_digest(const Sha256Digest& digest) { return to_hex(digest); }

}  // namespace millrace
