#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/version_reader.h"

namespace millrace {

struct ExtractOptions {
  std::size_t parallel = 16;
  // Told of bytes as they are written; from any thread.
  std::function<void(std::uint64_t bytes)> written = [](std::uint64_t) {};
};

struct ExtractTotals {
  std::uint64_t files = 0;
  std::uint64_t directories = 0;  // Without the root.
  std::uint64_t symlinks = 0;
  std::uint64_t bytes = 0;
};

// Writes the tree of a version into `directory`, which is new or empty: directories, files and
// symlinks, with modes and times. Where nobody knew the mode it is what the umask leaves. Files do
// not get the bits that make them run as their owner: the owner is whoever extracts.
//
// Nothing outside of the directory is touched, whatever the manifest says: every name is opened
// below it without following a link. Content is held against its SHA-256 where the manifest has it.
// kConflict when the directory is not empty; after a failure it holds part of the tree.
Result<ExtractTotals> extract_version(const RequestContext& context, const VersionReader& reader,
                                      const std::string& directory, const ExtractOptions& options);

}  // namespace millrace
