#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/status.h"
#include "cache/unit.h"
#include "platform/disk.h"

namespace millrace {

// What becomes of the pages of the page cache that a write could fill.
enum class WrittenPages : std::uint8_t {
  kPassedBy,  // Nobody reads it from the disk soon.
  kFilled,    // It is read again soon, and then need not come from the disk.
};

// The units of one object on a cache disk, and the checksum of each. It knows nothing of readers:
// CachedObject decides what may be read, written and forgotten, and when.
//
// Nothing is synced. What a power loss or a kill leaves behind is either right or noticed, because
// a unit counts only together with its checksum. All methods block, and are safe from any thread as
// long as no two of them write, forget and read the same unit at once.
class StoredObject {
 public:
  virtual ~StoredObject() = default;

  // Where the bytes are as they are stored, which is what checksums are of: the object starts at
  // `base()` of the file.
  virtual const std::shared_ptr<DiskFile>& file() const = 0;
  virtual std::uint64_t base() const = 0;
  // Reads bytes of the object as DiskFile::read_at and read_now do.
  virtual Result<std::size_t> read(std::uint64_t offset, MutableByteView into) {
    return file()->read_at(base() + offset, into);
  }
  virtual Result<bool> read_now(std::uint64_t offset, MutableByteView into) {
    return file()->read_now(base() + offset, into);
  }

  // The recorded checksums of units that were recorded when the object was opened or written since.
  // kCorruption when a record was damaged in the meantime.
  virtual Status read_checksums(UnitRange units, std::span<std::uint32_t> into) = 0;
  // Stores the bytes of whole units, then their checksums, which are those of `bytes`. After a
  // failure the units may be there or not, never wrong.
  virtual Status write(UnitRange units, ByteView bytes, std::span<const std::uint32_t> checksums,
                       WrittenPages pages) = 0;
  // Forgets units and frees their space. After a failure the units may still be recorded.
  virtual Status forget(UnitRange units) = 0;
  // Forgets units whose bytes are not what was written, without touching them: the right ones will
  // be written over them.
  virtual Status distrust(UnitRange units) = 0;
  // Notes for ever that others have the file open or mapped, perhaps longer than this process
  // lives: its bytes must stay until it is unlinked. kUnsupported when it cannot be handed out.
  virtual Status mark_handed_out() = 0;
};

}  // namespace millrace
