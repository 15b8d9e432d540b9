#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace millrace {

// A non-negative decimal number as people write it: "4", "1.5", "0.25". Kept exactly.
struct Decimal {
  std::uint64_t whole = 0;
  std::uint64_t fraction = 0;        // In units of 1 / fraction_scale.
  std::uint64_t fraction_scale = 1;  // A power of ten.

  // This many times `unit`, rounded down; nothing when that is above 2^64 - 1.
  std::optional<std::uint64_t> times(std::uint64_t unit) const;
};

// Reads a number from the front of `text` and removes it. Nothing, and `text` as it was, when there
// is none, when its whole part is above 2^64 - 1, or when it has more than 18 decimals.
std::optional<Decimal> take_decimal(std::string_view& text);

// value / unit to three significant digits, or to the last whole number, without trailing zeros:
// "1.5", "12", "1023".
std::string format_ratio(std::uint64_t value, std::uint64_t unit);

// kInvalidArgument: "'4 parsecs' is not a size: ...", with `text` cut short when it is long.
std::unexpected<Status> bad_value(std::string_view text, std::string_view why);

}  // namespace millrace
