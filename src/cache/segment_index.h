#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cache/segment_table.h"
#include "platform/disk.h"

namespace millrace {

// Something on disk that is not what was written. What it describes is treated as absent.
struct SegmentDamage {
  std::string path;
  std::string what;
};
// May be called from any thread, never under a lock.
using SegmentDamageReport = std::function<void(const SegmentDamage&)>;

// What one index says.
struct SegmentIndex {
  std::vector<SegmentPlace> places;  // Of live records, by slot.
  std::vector<std::uint32_t> damaged_slots;
  bool header_damaged = false;
};

// Reads the index of a segment that has `data_bytes`. Damage is reported and left out; an entry
// that was cut off at the end is the normal trace of a kill, and left out in silence. kUnsupported
// for a later format; other failures are those of the disk.
Result<SegmentIndex> read_segment_index(Disk& disk, const std::string& path, std::uint32_t segment,
                                        std::uint64_t data_bytes,
                                        const SegmentDamageReport& report);

// Replaces what was damaged, so that it is reported once and not at every start: entries by dead
// ones, the header by a sound one. After a failure some of it is as it was.
Status repair_segment_index(Disk& disk, const std::string& path, std::uint32_t segment,
                            const SegmentIndex& index);

// Marks one entry as dead.
Status bury_segment_entry(DiskFile& index, std::uint32_t segment, std::uint32_t slot);

// Where the entry of a slot starts.
inline std::uint64_t segment_slot_offset(std::uint32_t slot) {
  return kSegmentIndexHeaderBytes + std::uint64_t{slot} * kSegmentEntryBytes;
}

}  // namespace millrace
