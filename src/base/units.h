#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/status.h"

namespace millrace {

// "4096", "64KiB", "4 MiB", "1.5GiB" (powers of 1024) and "1kB", "10GB" (powers of 1000). Case of
// the unit does not matter; a bare "4M" is MiB, as in most tools. kInvalidArgument says what is
// accepted.
Result<std::uint64_t> parse_size(std::string_view text);
// The shortest form that people read: "4 MiB", "1.5 GiB", "300 B".
std::string format_size(std::uint64_t bytes);

// "250ms", "30s", "5m", "1h30m", "30d", "2w"; "us" and "ns" too. A bare number is refused: its unit
// would be a guess.
Result<Duration> parse_duration(std::string_view text);
// "250ms", "1.5s", "2h5m", "30d".
std::string format_duration(Duration duration);

// Part of a whole, from "80%". 0 to 100, decimals allowed.
struct Percentage {
  double percent = 0;
  std::uint64_t of(std::uint64_t whole) const;
};
Result<Percentage> parse_percentage(std::string_view text);

// A quota: bytes, or a share of something whose size is known later.
using SizeOrPercentage = std::variant<std::uint64_t, Percentage>;
Result<SizeOrPercentage> parse_size_or_percentage(std::string_view text);

}  // namespace millrace
