#pragma once

#include <string>

#include "base/status.h"
#include "frontends/fuse/fuse_connection.h"

namespace millrace {

// What the keeper holds about a mount, for the next daemon (docs/formats/keeper.md).
struct MountFacts {
  std::string path;
  std::string directory;  // Where it was mounted; it may have been moved since.
  bool allow_other = false;
  FuseView view;
};

std::string mount_facts_text(const MountFacts& facts);
// kUnsupported for facts of another version, kCorruption for what are none.
Result<MountFacts> parse_mount_facts(const std::string& text);

std::string_view fuse_opening_name(FuseOpening opening);
// kInvalidArgument says which there are.
Result<FuseOpening> parse_fuse_opening(std::string_view name);

}  // namespace millrace
