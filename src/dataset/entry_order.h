#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// What an entry of a dataset version is. The numbers are those of the manifest.
enum class EntryKind : std::uint8_t { kDirectory = 0, kFile = 1, kSymlink = 2 };
std::string_view entry_kind_name(EntryKind kind);

inline constexpr std::size_t kEntryPathBytesMax = 4095;
inline constexpr std::size_t kSymlinkTargetBytesMax = 4095;
inline constexpr std::uint64_t kEntriesMax = UINT32_MAX;

// Paths are bytes, relative to the root of the version, with '/' between names; the root is "".

// Why this cannot be the path of an entry, as a part of a sentence; nothing when it can. It has at
// most 4095 bytes, and each name in it is one (base/file_name.h).
std::optional<std::string> entry_path_fault(std::string_view path);

// How many names a path has; 0 for the root.
std::size_t path_depth(std::string_view path);
// "a/b" gives "a", "a" gives "".
std::string_view entry_parent(std::string_view path);
std::string_view entry_base(std::string_view path);

// The order of the manifest: by depth, then name by name, names as unsigned bytes. So the children
// of a directory are contiguous, and the groups of children follow each other in the order of their
// directories.
std::strong_ordering compare_entries(std::string_view a, std::string_view b);
// The same for two paths of one depth.
std::strong_ordering compare_level_paths(std::string_view a, std::string_view b);

}  // namespace millrace
