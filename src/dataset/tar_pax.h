#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace millrace {

// What pax headers and GNU's long names say about the members behind them.
struct TarAttributes {
  std::optional<std::string> path = {};
  std::optional<std::string> link_target = {};
  std::optional<std::uint64_t> size = {};
  std::optional<std::int64_t> mtime_ns = {};

  // Takes over what `later` says.
  void override_by(const TarAttributes& later);
};

// Reads the records of a pax header, "27 path=...\n" each, on top of what `attributes` has. A
// record without a value takes an attribute back; keys that are not ours are skipped. kCorruption
// for what is no such record or value, kUnsupported for sparse files. The message is for the reader
// to complete with the place.
Status parse_pax_records(std::string_view records, TarAttributes& attributes);

}  // namespace millrace
