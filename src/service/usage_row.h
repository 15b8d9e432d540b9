#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace millrace {

// Whose reads of what. Rows that were folded together have kOtherUsage in place of what they
// differed in.
struct UsageKey {
  std::string version;  // Or a bucket, as it is shown: "/buckets/train".
  std::string principal;
  std::string run;  // Empty when the reader was part of none.

  auto operator<=>(const UsageKey&) const = default;
};
inline constexpr std::string_view kOtherUsage = "(other)";

struct UsageCounts {
  std::uint64_t read_bytes = 0;
  std::uint64_t reads = 0;
  // Requests to the store because of it, and what those delivered, read ahead and preloaded bytes
  // included.
  std::uint64_t fetches = 0;
  std::uint64_t fetched_bytes = 0;
  // Files that were handed to the kernel or another process whole: reads of these are not seen.
  std::uint64_t handed_out_files = 0;
  std::uint64_t handed_out_bytes = 0;

  UsageCounts& operator+=(const UsageCounts& other);
  bool operator==(const UsageCounts&) const = default;
};

struct UsageRow {
  UsageKey key;
  UsageCounts counts;
  WallTime last{};  // About when something was counted, or folded into it, last.
  // Its version, or bucket, has metrics of its own.
  bool is_named = false;

  bool operator==(const UsageRow&) const = default;
};

// The file of all rows (docs/formats/usage.md).
std::string encode_usage(const std::vector<UsageRow>& rows);
// Lines that are damaged are reported and skipped. kCorruption when it is no such file at all,
// kUnsupported for a later format.
Result<std::vector<UsageRow>> decode_usage(std::string_view text, const std::string& path);

}  // namespace millrace
