#pragma once

#include <string>

#include "base/units.h"
#include "cli/command.h"
#include "cli/session.h"
#include "dataset/registry.h"

namespace millrace::cli {

// The flags that every removal of versions takes.
struct RemovalOptions {
  std::string retention = "30d";
  std::string reason = {};
  bool yes = false;
};

void add_removal_options(CLI::App& command, RemovalOptions& options);

// kInvalidArgument names the flag.
Result<Duration> retention_of(const RemovalOptions& options);

// Tells about a version that was removed: until when it can come back, and how.
Status report_removed(Session& session, const VersionEntry& removed);

}  // namespace millrace::cli
