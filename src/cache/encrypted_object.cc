#include "cache/encrypted_object.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/checksum.h"

namespace millrace {
namespace {

constexpr std::uint64_t kSector = SectorCipher::kSectorBytes;
static_assert(kUnitBytes % kSector == 0, "a unit is read and written alone");

// How much is encrypted at a time. A small object is written in one piece.
constexpr std::size_t kPieceBytes = kSmallObjectBytesMax;
static_assert(kPieceBytes % kUnitBytes == 0);

}  // namespace

EncryptedObject::EncryptedObject(std::unique_ptr<StoredObject> inner, ObjectVersion version,
                                 std::shared_ptr<SectorCipher> cipher)
    : inner_(std::move(inner)), version_(std::move(version)), cipher_(std::move(cipher)) {}

template <class ReadPart>
Result<bool> EncryptedObject::read_sectors(std::uint64_t offset, MutableByteView into,
                                           const ReadPart& read_part) {
  const SectorCipher::Name& name = version_.digest().bytes;
  while (!into.empty()) {
    const std::uint64_t begin = offset / kSector * kSector;
    const std::uint64_t end = std::min(begin + kSector, version_.size());
    std::uint64_t length = into.size();
    if (offset == begin && length >= end - begin) {
      if (offset + length < version_.size()) length -= length % kSector;
      const MutableByteView whole = into.first(length);
      MR_ASSIGN_OR_RETURN(const bool there, read_part(offset, whole));
      if (!there) return false;
      MR_RETURN_IF_ERROR(cipher_->decrypt(name, offset, whole, whole));
    } else {
      std::array<std::byte, kSector> memory;
      const MutableByteView sector = MutableByteView(memory).first(end - begin);
      MR_ASSIGN_OR_RETURN(const bool there, read_part(begin, sector));
      if (!there) return false;
      MR_RETURN_IF_ERROR(cipher_->decrypt(name, begin, sector, sector));
      length = std::min(length, end - offset);
      std::memcpy(into.data(), sector.data() + (offset - begin), length);
    }
    offset += length;
    into = into.subspan(length);
  }
  return true;
}

Result<std::size_t> EncryptedObject::read(std::uint64_t offset, MutableByteView into) {
  MR_ASSIGN_OR_RETURN(
      const bool there,
      read_sectors(offset, into, [&](std::uint64_t at, MutableByteView part) -> Result<bool> {
        MR_ASSIGN_OR_RETURN(const std::size_t size, file()->read_at(base() + at, part));
        return size == part.size();
      }));
  return there ? into.size() : 0;
}

Result<bool> EncryptedObject::read_now(std::uint64_t offset, MutableByteView into) {
  return read_sectors(offset, into, [&](std::uint64_t at, MutableByteView part) {
    return file()->read_now(base() + at, part);
  });
}

Status EncryptedObject::read_checksums(UnitRange units, std::span<std::uint32_t> into) {
  return inner_->read_checksums(units, into);
}

Status EncryptedObject::write(UnitRange units, ByteView bytes,
                              std::span<const std::uint32_t> /*checksums*/, WrittenPages pages) {
  const std::size_t memory_bytes = std::min(bytes.size(), kPieceBytes);
  // Whole pages can go past the page cache.
  const auto memory = std::unique_ptr<std::byte[], void (*)(std::byte*)>(
      new (std::align_val_t{kSector}) std::byte[memory_bytes],
      [](std::byte* piece) { operator delete[](piece, std::align_val_t{kSector}); });
  while (!bytes.empty()) {
    const ByteView part = bytes.first(std::min(bytes.size(), memory_bytes));
    const MutableByteView ciphertext(memory.get(), part.size());
    MR_RETURN_IF_ERROR(
        cipher_->encrypt(version_.digest().bytes, units.first * kUnitBytes, part, ciphertext));
    std::vector<std::uint32_t> checksums;
    for (std::size_t at = 0; at < part.size(); at += kUnitBytes)
      checksums.push_back(crc32c(ciphertext.subspan(at, std::min(kUnitBytes, part.size() - at))));
    const auto count = static_cast<std::uint32_t>(checksums.size());
    MR_RETURN_IF_ERROR(inner_->write({units.first, count}, ciphertext, checksums, pages));
    units = {units.first + count, units.count - count};
    bytes = bytes.subspan(part.size());
  }
  return {};
}

Status EncryptedObject::mark_handed_out() {
  return {StatusCode::kUnsupported, "an encrypted cache hands out no files"};
}

}  // namespace millrace
