#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"

namespace millrace {

// A file of a Disk that is held for this process alone, from Disk::lock until destruction. Must not
// outlive its disk.
class DiskLock {
 public:
  virtual ~DiskLock() = default;
};

// How much of a lock file is looked at to tell whose it is.
inline constexpr std::size_t kLockTextBytesMax = 512;

// kConflict: "<path> is held by <the first line of text>", without what could steer a terminal.
// The text is empty while a new holder is about to write it: then it is "another process".
Status lock_conflict(std::string_view path, std::string_view text);

}  // namespace millrace
