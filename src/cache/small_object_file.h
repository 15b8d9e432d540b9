#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "cache/object_version.h"
#include "cache/segment_store.h"
#include "cache/stored_object.h"

namespace millrace {

// A small object: one record of the segment store, which comes and goes whole.
class SmallObjectFile final : public StoredObject {
 public:
  // `found` is nothing when the object has yet to be written.
  SmallObjectFile(std::shared_ptr<SegmentStore> segments, ObjectVersion version,
                  std::optional<SmallObject> found);

  const std::shared_ptr<DiskFile>& file() const override { return place_.file; }
  std::uint64_t base() const override { return place_.data_offset; }
  Status read_checksums(UnitRange units, std::span<std::uint32_t> into) override;
  Status write(UnitRange units, ByteView bytes, std::span<const std::uint32_t> checksums,
               WrittenPages pages) override;
  Status forget(UnitRange units) override;
  Status distrust(UnitRange units) override;
  Status mark_handed_out() override;

 private:
  const std::shared_ptr<SegmentStore> segments_;
  const ObjectVersion version_;
  SmallObject place_;  // Set by write(), before anybody reads.
};

}  // namespace millrace
