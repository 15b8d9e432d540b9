#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "cache/object_version.h"
#include "cache/stored_object.h"
#include "cache/unit.h"
#include "platform/disk.h"

namespace millrace {

// What the map of an object says about its units.
struct UnitRecords {
  std::vector<std::uint32_t> recorded;  // Units that are there, ascending.
  std::vector<std::uint32_t> damaged;   // Units whose record is neither empty nor sound.
  bool handed_out = false;
};

// A large object: a sparse data file with the object's bytes in their places, so that a complete
// one is an ordinary local file, and a map file with the object's version and a record per unit.
// The layout is in docs/formats/cache.md.
class ObjectFile final : public StoredObject {
 public:
  // `stem` is the path of both files without ".data" and ".map". kNotFound when there is no map;
  // kCorruption when it is not a sound map of this version; kUnsupported when a later Millrace
  // wrote it.
  static Result<std::unique_ptr<ObjectFile>> open(Disk& disk, const std::string& stem,
                                                  const ObjectVersion& version);
  // Makes both files, empty; what was there before is unlinked, and lives on for those who have it
  // open.
  static Result<std::unique_ptr<ObjectFile>> create(Disk& disk, const std::string& stem,
                                                    const ObjectVersion& version);
  // Unlinks both. Success when nothing was there.
  static Status remove(Disk& disk, const std::string& stem);

  Result<UnitRecords> read_records();
  // Whether mark_handed_out() was called in any run; so too when the mark is damaged.
  Result<bool> is_handed_out();

  const std::shared_ptr<DiskFile>& file() const override { return data_; }
  std::uint64_t base() const override { return 0; }
  Status read_checksums(UnitRange units, std::span<std::uint32_t> into) override;
  Status write(UnitRange units, ByteView bytes, std::span<const std::uint32_t> checksums,
               WrittenPages pages) override;
  Status forget(UnitRange units) override;
  Status distrust(UnitRange units) override;
  Status mark_handed_out() override;

 private:
  ObjectFile(const ObjectVersion& version, std::uint64_t records_offset,
             std::unique_ptr<DiskFile> map, std::shared_ptr<DiskFile> data);
  Status read_record_bytes(UnitRange units, MutableByteView into);

  const ObjectVersion version_;
  const std::uint64_t records_offset_;
  const std::unique_ptr<DiskFile> map_;
  const std::shared_ptr<DiskFile> data_;
};

// The version that a map file describes, for whoever finds one by listing. Failures as open().
Result<ObjectVersion> read_object_map_version(Disk& disk, const std::string& stem);

}  // namespace millrace
