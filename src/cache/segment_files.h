#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "platform/disk.h"

namespace millrace {

// The data files of segments, opened when they are needed. A terabyte of small objects has
// thousands of segments, more than a process may have files open: the ones used last stay open, and
// others as long as somebody holds them.
//
// All methods are safe from any thread.
class SegmentFiles {
 public:
  SegmentFiles(Disk& disk, std::string directory, std::size_t open_files_max);

  // Makes a segment known, with its file when that is open anyway.
  void add(std::uint32_t segment, std::shared_ptr<DiskFile> file = nullptr);
  // Closes it, once nobody holds it any more.
  void forget(std::uint32_t segment);
  // For reading. kNotFound when the segment is not known, or its file is gone.
  Result<std::shared_ptr<DiskFile>> open(std::uint32_t segment);

  std::string data_path(std::uint32_t segment) const;
  std::string index_path(std::uint32_t segment) const;

 private:
  struct OpenFile {
    std::shared_ptr<DiskFile> file;
    std::uint64_t last_use = 0;
  };
  // Takes the file that was not used for longest out of the open ones if there are too many. The
  // caller lets go of it outside the lock, for closing a file can take long.
  std::shared_ptr<DiskFile> take_idle() MR_REQUIRES(mutex_);

  Disk& disk_;
  const std::string directory_;
  const std::size_t open_files_max_;

  Mutex mutex_;
  std::map<std::uint32_t, OpenFile> files_ MR_GUARDED_BY(mutex_);
  std::size_t open_count_ MR_GUARDED_BY(mutex_) = 0;
  std::uint64_t uses_ MR_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
