#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cache/slot_index.h"
#include "platform/disk.h"
#include "vfs/node_number.h"

namespace millrace {

struct NodePathsLimits {
  // Of one of the two files. In memory a path takes about 25 bytes.
  std::size_t paths_max = 1'000'000;
  std::uint64_t bytes_max = 128 * kMiB;
};

// Remembers the paths of the nodes of /buckets that clients were told of, in two files
// (docs/formats/nodes.md): a client that comes back after a restart has only the number, and a hash
// tells no path.
//
// Invariants:
//  1. A number leads to one path. The second path with the same number is refused.
//  2. What was added is in the file once flush() has succeeded, and so survives a kill. It is not
//     synced: a power loss may take it, and then clients look their paths up anew.
//  3. When a file is full it takes the place of the one before, which is forgotten; what is used
//     meanwhile is carried over. So a path is forgotten when `paths_max` others were used since.
//
// All methods are safe from any thread, and block. The disk outlives it.
class NodePaths {
 public:
  static constexpr std::size_t kPathBytesMax = 2048;

  // Reads `path` and "`path`.before", made when absent. What follows a torn or damaged record is
  // dropped; a file that is no such file is kCorruption, and left alone.
  static Result<std::unique_ptr<NodePaths>> open(Disk& disk, std::string path,
                                                 NodePathsLimits limits = {});

  // The number of a path, remembered: in memory, while the disk is full, up to a limit. kInternal
  // when another path has it; kInvalidArgument when it is longer than a path can be; the disk's
  // failures.
  Result<NodeNumber> add(std::string_view path) MR_EXCLUDES(mutex_);
  // Before a number goes to a client. One write for all that was added; what it could not write is
  // known until a restart, and is written by the next.
  Status flush() MR_EXCLUDES(mutex_);
  // kNotFound when it was forgotten or never given out.
  Result<std::string> find(NodeNumber number) MR_EXCLUDES(mutex_);

 private:
  struct Record {
    std::uint64_t number = 0;
    std::uint32_t offset = 0;
    std::uint32_t checksum = 0;  // It tells paths apart without reading them.
  };
  // One file, and what of it is in memory.
  struct Generation {
    std::unique_ptr<DiskFile> file;
    std::uint64_t bytes = 0;  // Written and yet to be written.
    std::vector<Record> records;
    SlotIndex index;

    const Record* find(std::uint64_t number) const;
    void add(Record record);
  };

  NodePaths(Disk& disk, std::string path, NodePathsLimits limits)
      : disk_(disk), path_(std::move(path)), limits_(limits) {}
  Status load();
  Result<Generation> load_file(const std::string& path);
  Status begin_file(Generation& generation);
  Status turn_over() MR_REQUIRES(mutex_);
  Status append(std::uint64_t number, std::string_view path) MR_REQUIRES(mutex_);
  Status write_pending() MR_REQUIRES(mutex_);
  Result<std::string> read(const Generation& generation, const Record& record) MR_REQUIRES(mutex_);

  Disk& disk_;
  const std::string path_;
  const NodePathsLimits limits_;

  Mutex mutex_;
  Generation now_ MR_GUARDED_BY(mutex_);
  Generation before_ MR_GUARDED_BY(mutex_);
  // The end of now_, not written yet.
  std::string pending_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
