#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"

namespace millrace {

// One log line, without its end of line: always a single line, for any bytes in message and fields.
//   text  2026-01-02T03:04:05.678Z warn message key=value key2="with space"
//   JSON  {"time":"...","level":"warn","message":"...","key":"value","count":3}
// In text, control characters and invalid UTF-8 are escaped (a name from a bucket must not steer
// a terminal); in JSON, invalid UTF-8 becomes U+FFFD.
std::string render_log_line(LogFormat format, WallTime time, LogLevel level,
                            std::string_view message, std::initializer_list<LogField> fields);

std::string_view log_level_name(LogLevel level);

}  // namespace millrace
