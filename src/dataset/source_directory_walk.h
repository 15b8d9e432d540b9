#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "dataset/source_tree.h"
#include "dataset/source_work.h"

namespace millrace {

// Reads directories of a local tree for DirectorySource: one object per thread and directory taken
// from the work. Thread-compatible.
class SourceDirectoryWalk {
 public:
  // Everything outlives the walk. `root` is a descriptor of the tree's root.
  SourceDirectoryWalk(const RequestContext& context, const Clock& clock, int root,
                      SourceWork<std::string>& work, SourceSink& sink);

  // Gives the directory and what is in it to the sink, and its subdirectories to the work, or walks
  // into them when too many wait there. A directory that cannot be read is a problem, and no
  // failure, unless it is the root.
  Status walk(const std::string& path);

 private:
  Status enter(const std::string& path, std::size_t depth);
  Status read_names(int directory, const std::string& path, std::size_t depth);
  Status add_name(int directory, const std::string& path, std::string_view name, std::size_t depth);
  Status add_link(int directory, const struct stat& facts, SourceEntry entry,
                  std::string_view name);
  Status problem(const std::string& path, int error, std::string_view what);

  const RequestContext& context_;
  const Clock& clock_;
  const int root_;
  SourceWork<std::string>& work_;
  SourceBatch batch_;
};

// Facts of a file as the entry of a scan has them, but for its path.
SourceEntry source_entry_of(const struct stat& facts);

}  // namespace millrace
