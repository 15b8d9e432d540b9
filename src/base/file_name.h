#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// Of every Linux file system, and of NFS clients.
inline constexpr std::size_t kFileNameBytesMax = 255;

// Why this cannot be the name of a file or directory, as a part of a sentence about its path;
// nothing when it can. Names are bytes: any but NUL and '/', 1 to 255 of them, and neither "." nor
// "..".
std::optional<std::string> file_name_fault(std::string_view name);

}  // namespace millrace
