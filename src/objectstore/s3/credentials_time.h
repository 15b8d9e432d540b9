#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace millrace::s3 {

// "2026-01-02T03:04:05Z", also with a fraction and with an offset ("+01:00", "+0100"). Nothing for
// anything else.
std::optional<WallTime> parse_iso8601(std::string_view text);

// "2026-01-02T03:04:05Z", cut to the second.
std::string format_iso8601(WallTime time);

}  // namespace millrace::s3
