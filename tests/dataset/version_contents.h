#pragma once

#include <map>
#include <set>
#include <string>

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/version_log.h"
#include "objectstore/object_store.h"

namespace millrace {

// A version as the store has it.
struct VersionContents {
  // The bytes of each file, by path. Directories and symlinks are left out.
  std::map<std::string, std::string> files = {};
  // What must stay in the store for that: objects and the manifest.
  std::set<std::string> keys = {};
};

// Reads all of a version that is published or removed. Fails when anything of it is missing or is
// not what the manifest says. Pages of the manifest go to a directory of their own below
// `directory`, which is removed again, so that nothing comes from an earlier look.
Result<VersionContents> read_version_contents(const RequestContext& context, ObjectStore& store,
                                              const VersionEntry& entry,
                                              const std::string& directory);

}  // namespace millrace
