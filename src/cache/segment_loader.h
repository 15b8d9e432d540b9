#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cache/segment_files.h"
#include "cache/segment_index.h"
#include "platform/disk.h"

namespace millrace {

// A segment that a start has found, by the files that it has.
struct FoundSegment {
  std::uint32_t segment = 0;
  bool has_data = false;
  bool has_index = false;
};

// What the disk says about a segment. Nothing of it is reported yet.
struct LoadedSegment {
  std::uint32_t segment = 0;
  // Not OK when a file could not be read: then `path` names it, and nothing else is known.
  Status status;
  std::string path;
  SegmentIndex index;
  std::vector<SegmentDamage> damage;
  // Space of the data file that belongs to no record but is not free.
  std::vector<ByteRange> leaked;
};

// Reads the segments of a directory for a start, one after the other. Where there are many, a few
// threads read ahead: a terabyte of small objects has half a gigabyte of indexes.
//
// Invariants:
//  1. Segments are taken in the order in which they were given.
//  2. Of those not taken yet, at most kAheadMax are loaded or being loaded.
//
// One thread uses it. Disk, files and `found` must outlive it; it changes none of them.
class SegmentLoader {
 public:
  SegmentLoader(Disk& disk, const SegmentFiles& files, const std::vector<FoundSegment>& found);

  // The next segment, as long as there are more.
  bool has_next() const { return taken_ < found_.size(); }
  LoadedSegment next();

 private:
  static constexpr std::size_t kAheadMax = 64;
  static constexpr std::size_t kThreads = 4;

  LoadedSegment load(const FoundSegment& found) const;
  void load_ahead();

  // Constant after construction.
  Disk& disk_;
  const SegmentFiles& files_;
  const std::vector<FoundSegment>& found_;

  std::size_t started_ = 0;
  std::size_t taken_ = 0;

  Mutex mutex_;
  CondVar loaded_one_;
  std::map<std::size_t, LoadedSegment> loaded_ MR_GUARDED_BY(mutex_);

  // Only where it is worth its threads. Last, because they use the rest.
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace millrace
