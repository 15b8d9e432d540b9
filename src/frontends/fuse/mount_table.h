#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

// The kind of our mounts, as the kernel lists it.
inline constexpr const char* kMountKind = "fuse.millrace";
inline constexpr const char* kMountSubtype = "millrace";

struct ListedMount {
  // Of the file system, "0:57". It stays while that lives, wherever the directory is moved to;
  // afterwards the kernel gives it to another.
  std::string number;
  std::string directory;  // Where it is now.
  std::string options;    // Of this place: "ro,nosuid,nodev".
  std::string kind;
  std::string source;
};

// What a text as /proc/self/mountinfo lists, in its order: of several at one directory the
// uppermost is last. Lines that are none are left out.
std::vector<ListedMount> parse_mountinfo(std::string_view text);

// What this process can see. These ask no file system, so they do not wait for one.
std::vector<ListedMount> listed_mounts();
// Nothing when nothing is mounted there. The directory is one that mount_directory() gave.
std::optional<ListedMount> uppermost_mount(std::string_view directory);
// All places of a file system of ours: one as a rule, none after an unmount, more where somebody
// bound it to another directory too.
std::vector<ListedMount> places_of(std::string_view number);

}  // namespace millrace
