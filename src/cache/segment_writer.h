#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cache/segment_format.h"
#include "platform/disk.h"

namespace millrace {

// Appends to one fresh segment: the record first, then its entry.
//
// Invariants:
//  1. No two reservations that are not given back share a page.
//  2. Slots are written one after the other, and one whose write failed is written again: an index
//     has no gaps, but for those that a power loss makes.
//
// All methods are safe from any thread; records are written outside the lock.
class SegmentWriter {
 public:
  // Makes both files. After a failure neither is there, as far as the disk allows.
  static Result<std::unique_ptr<SegmentWriter>> create(Disk& disk, const std::string& data_path,
                                                       const std::string& index_path,
                                                       std::uint32_t segment,
                                                       std::uint64_t bytes_max);

  std::uint32_t segment() const { return segment_; }
  const std::shared_ptr<DiskFile>& data() const { return data_; }

  // The first of `pages` that are the caller's from now on; nothing when the segment is full. An
  // empty segment is never full.
  std::optional<std::uint32_t> reserve(std::uint32_t pages);
  // After a failure any part may have been written.
  Status write_record(const SegmentEntry& entry, ByteView header, ByteView data);
  // Makes the record one that a restart finds; gives its slot. After a failure it does not.
  Result<std::uint32_t> append(const SegmentEntry& entry);
  // Frees the space of a record that has no entry. kUnsupported where the disk cannot; when it was
  // the last one its place is used again, so this counts as success.
  Status give_back(const SegmentEntry& entry);

 private:
  SegmentWriter(std::uint32_t segment, std::uint64_t bytes_max, std::unique_ptr<DiskFile> data,
                std::unique_ptr<DiskFile> index);

  // Constant after construction.
  const std::uint32_t segment_;
  const std::uint64_t pages_max_;
  const std::shared_ptr<DiskFile> data_;
  const std::unique_ptr<DiskFile> index_;

  Mutex mutex_;
  std::uint32_t end_page_ MR_GUARDED_BY(mutex_) = 0;
  std::uint32_t slots_ MR_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
