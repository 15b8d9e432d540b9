#pragma once

#include <cstdint>

#include "base/status.h"
#include "vfs/node_number.h"

namespace millrace {

// What was tried, since the same failure has another number for each.
enum class FuseAttempt : std::uint8_t {
  kName,  // To find a name in a directory.
  kNode,  // To learn about a node that the kernel knows.
  kOpen,  // To open one, for which there is a place or none.
  kData,  // To read a file.
};

// The one place where failures get their errno.
int fuse_errno(const Status& status, FuseAttempt attempt, NodePlace place);

}  // namespace millrace
