#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "platform/disk.h"

namespace millrace {

// Files that are read and replaced whole. Both block.

// What a file that is being replaced is called until it is whole.
inline constexpr std::string_view kUnfinishedSuffix = ".new";

// kNotFound when it is absent, kCorruption when it is longer than `bytes_max`.
Result<std::string> read_small_file(Disk& disk, const std::string& path, std::uint64_t bytes_max);
// Who reads it finds the old content or the new one, also after a power loss. Durable on success.
// One at a time for one path.
Status replace_small_file(Disk& disk, const std::string& path, std::string_view content);

}  // namespace millrace
