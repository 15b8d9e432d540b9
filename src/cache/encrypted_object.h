#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cache/object_version.h"
#include "cache/stored_object.h"
#include "platform/sector_cipher.h"

namespace millrace {

// A stored object whose bytes are ciphertext on the disk. Its checksums are of the ciphertext: they
// tell nothing about the content, and can be checked without the key. It cannot be handed out.
class EncryptedObject final : public StoredObject {
 public:
  EncryptedObject(std::unique_ptr<StoredObject> inner, ObjectVersion version,
                  std::shared_ptr<SectorCipher> cipher);

  const std::shared_ptr<DiskFile>& file() const override { return inner_->file(); }
  std::uint64_t base() const override { return inner_->base(); }
  Result<std::size_t> read(std::uint64_t offset, MutableByteView into) override;
  Result<bool> read_now(std::uint64_t offset, MutableByteView into) override;
  Status read_checksums(UnitRange units, std::span<std::uint32_t> into) override;
  Status write(UnitRange units, ByteView bytes, std::span<const std::uint32_t> checksums,
               WrittenPages pages) override;
  Status forget(UnitRange units) override { return inner_->forget(units); }
  Status distrust(UnitRange units) override { return inner_->distrust(units); }
  Status mark_handed_out() override;

 private:
  // Reads whole sectors by `read_part`, which says whether all of a part was there.
  template <class ReadPart>
  Result<bool> read_sectors(std::uint64_t offset, MutableByteView into, const ReadPart& read_part);

  const std::unique_ptr<StoredObject> inner_;
  const ObjectVersion version_;
  const std::shared_ptr<SectorCipher> cipher_;
};

}  // namespace millrace
