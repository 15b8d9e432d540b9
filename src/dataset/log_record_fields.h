#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/status.h"
#include "platform/digest.h"

namespace millrace {

// Reads typed fields out of a record that somebody else wrote. The first thing that is not as it
// must be becomes the status, kCorruption with the key and the field in it; from then on readers
// return empty values. So a decoder reads all its fields and looks at the status once.
//
// Keeps a reference to the JSON and to the status, which outlive it. Thread-compatible.
class LogRecordFields {
 public:
  LogRecordFields(const nlohmann::json& object, std::string key, Status& status);

  bool has(const char* name) const;
  std::string text(const char* name);
  std::uint64_t number(const char* name);
  bool flag(const char* name);
  WallTime time(const char* name);
  Sha256Digest digest(const char* name);
  // A duration in whole seconds, at most 95 years.
  Duration seconds(const char* name);
  // See is_record_nonce().
  std::string nonce(const char* name);
  std::map<std::string, std::string> text_map(const char* name);
  std::vector<std::string> text_list(const char* name);
  LogRecordFields object(const char* name);
  std::vector<LogRecordFields> object_list(const char* name);

  // Makes the field the culprit, for values that only the caller can judge.
  void refuse(const char* name, std::string_view why);

 private:
  // The field, or nothing after a failure, which it reports if the field is absent.
  const nlohmann::json* find(const char* name);

  const nlohmann::json& object_;
  const std::string key_;
  Status& status_;
};

// 32 lower-case hexadecimal digits, as Random::token() makes them.
bool is_record_nonce(std::string_view text);

// What is written for the readers above.
std::string record_time(WallTime time);
std::string record_digest(const Sha256Digest& digest);

}  // namespace millrace
