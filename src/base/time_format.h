#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace millrace {

// Civil time as protocols write it: always UTC, never a locale. Parsers are strict, take any bytes,
// and answer kInvalidArgument for what is not exactly of the form, no real date, or outside the
// years 1678 to 2261, which is what WallTime holds. There are no leap seconds.

// HTTP's Date and Last-Modified (RFC 7231 IMF-fixdate): "Fri, 02 Jan 2026 03:04:05 GMT". Fractions
// of a second are cut off.
std::string format_http_date(WallTime time);
Result<WallTime> parse_http_date(std::string_view text);

// ISO 8601 basic, as in SigV4: "20260102T030405Z". Fractions of a second are cut off.
std::string format_iso8601_basic(WallTime time);
Result<WallTime> parse_iso8601_basic(std::string_view text);

// ISO 8601 extended, in milliseconds: "2026-01-02T03:04:05.678Z". The parser takes no decimals to
// nine of them, and an offset such as "+00:00" in place of the "Z", as RFC 3339 does.
std::string format_iso8601(WallTime time);
Result<WallTime> parse_iso8601(std::string_view text);

}  // namespace millrace
