#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/units.h"
#include "cli/output.h"

namespace millrace::cli {

// Fields of the daemon's documents as cells of a table. "-" for what is absent or null.

inline std::string text_cell(const Json& document, const char* name) {
  const auto found = document.find(name);
  if (found == document.end() || !found->is_string()) return "-";
  return found->get<std::string>().empty() ? "-" : found->get<std::string>();
}

inline std::uint64_t number_of(const Json& document, const char* name) {
  const auto found = document.find(name);
  return found == document.end() || !found->is_number_unsigned() ? 0 : found->get<std::uint64_t>();
}

inline std::string size_cell(const Json& document, const char* name) {
  return format_size(number_of(document, name));
}

inline std::string count_cell(const Json& document, const char* name) {
  return std::to_string(number_of(document, name));
}

// Nothing for what is absent or null.
inline std::optional<Duration> seconds_of(const Json& document, const char* name) {
  // More than a daemon says, and far from what a duration can hold.
  constexpr std::uint64_t kSecondsMax = std::uint64_t{1} << 32;
  const auto found = document.find(name);
  if (found == document.end() || !found->is_number_unsigned()) return std::nullopt;
  return std::chrono::seconds(std::min(found->get<std::uint64_t>(), kSecondsMax));
}

}  // namespace millrace::cli
