#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/status.h"
#include "dataset/registry_writer.h"

namespace millrace {

inline constexpr std::size_t kLogRecordBytesMax = 256 * 1024;
inline constexpr std::uint64_t kLogRecordFormat = 1;

// One record of the registry, as docs/formats/registry.md lays it out: who said what and when, with
// a nonce that tells a writer's own record from another's, and a checksum over all of it.
struct LogRecord {
  // Where it is stored. Part of the record, so that one that was copied elsewhere is noticed.
  std::string key = {};
  std::string kind = {};
  std::uint64_t number = 0;
  // 32 hexadecimal digits.
  std::string nonce = {};
  WallTime time{};
  WriterIdentity who = {};
  // Always an object.
  nlohmann::json payload = nlohmann::json::object();
};

// kInvalidArgument when the text would be longer than a record may be. Bytes that are no UTF-8 are
// replaced by U+FFFD.
Result<std::string> encode_log_record(const LogRecord& record);

// Takes any bytes. kUnsupported for a later format, kCorruption for everything that is not exactly
// the record of `key`; both name the key.
Result<LogRecord> decode_log_record(std::string_view text, const std::string& key);

}  // namespace millrace
