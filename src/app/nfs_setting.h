#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace millrace {

// Where NFS is served.
struct NfsSetting {
  std::string address;
  std::uint16_t port = 0;  // 0: any that is free.

  // "0.0.0.0:2049", "[::]:2049".
  std::string to_string() const;
  bool operator==(const NfsSetting&) const = default;
};

// "0.0.0.0", "10.0.0.1:2049", "::", "[fd00::1]:2049", or "none", which is nothing. kInvalidArgument
// for anything else, names of machines included.
Result<std::optional<NfsSetting>> parse_nfs_setting(std::string_view text);

}  // namespace millrace
