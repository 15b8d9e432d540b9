#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "cache/unit.h"
#include "dataset/manifest.h"

namespace millrace {

Result<ObjectRecord> Manifest::object_record(std::uint32_t number) const {
  MR_ASSIGN_OR_RETURN(const ByteView bytes,
                      pages_->view(ManifestSection::kObjects,
                                   std::uint64_t{number} * kObjectRecordBytes, kObjectRecordBytes));
  auto record = decode_object(bytes);
  if (!record) return wrong("object", number, record.error().message());
  if (record->store > header().stores.size()) return wrong("object", number, "no such store");
  return record;
}

Result<ManifestObject> Manifest::object(std::uint32_t number) const {
  MR_ASSIGN_OR_RETURN(const ObjectRecord record, object_record(number));
  MR_ASSIGN_OR_RETURN(const ByteView texts,
                      pages_->view(ManifestSection::kTexts, record.texts_offset,
                                   std::uint64_t{record.key_bytes} + record.identity_bytes));
  const std::string_view text = as_text(texts);
  ManifestObject object{.key = ObjectKey(std::string(text.substr(0, record.key_bytes))),
                        .identity = ObjectIdentity(std::string(text.substr(record.key_bytes))),
                        .size = record.size,
                        .foreign = record.foreign,
                        .store = std::string(header().store(record.store)),
                        .checksums = nullptr};
  if (!record.first_checksum) return object;
  const std::uint64_t count = header().bytes(ManifestSection::kChecksums) / kUnitChecksumBytes;
  if (*record.first_checksum > count || unit_count(record.size) > count - *record.first_checksum) {
    return wrong("object", number, "it has checksums beyond their section");
  }
  MR_ASSIGN_OR_RETURN(
      const ByteView bytes,
      pages_->view(ManifestSection::kChecksums, *record.first_checksum * kUnitChecksumBytes,
                   std::uint64_t{unit_count(record.size)} * kUnitChecksumBytes));
  auto checksums = std::make_shared<UnitChecksums>(unit_count(record.size));
  std::memcpy(checksums->data(), bytes.data(), bytes.size());
  object.checksums = std::move(checksums);
  return object;
}

Result<ManifestObject> Manifest::object_of(const ManifestEntry& entry, const Extent& extent) const {
  return extent.object == kOwnObject ? own_object(entry) : object(extent.object);
}

Result<ManifestObject> Manifest::own_object(const ManifestEntry& entry) const {
  std::optional<ObjectIdentity> identity = entry.hash().identity();
  if (!identity) return wrong("entry", entry.index(), "its object has no identity");
  MR_ASSIGN_OR_RETURN(const std::string path, path_of(entry.index()));
  std::string key = prefix() + path;
  if (key.size() > kKeyBytesMax) return wrong("entry", entry.index(), "its key is too long");
  return ManifestObject{.key = ObjectKey(std::move(key)),
                        .identity = *std::move(identity),
                        .size = entry.size(),
                        .foreign = true,
                        .store = std::string(prefix_store()),
                        .checksums = nullptr};
}

Result<std::vector<Extent>> Manifest::extents(const ManifestEntry& entry) const {
  const EntryRecord& record = entry.record_;
  Extent whole{.object = record.object,
               .codec = ExtentCodec::kNone,
               .offset = record.offset,
               .stored_bytes = record.size,
               .logical_bytes = record.size};
  switch (record.form) {
    case ExtentForm::kNone:
      return std::vector<Extent>{};
    case ExtentForm::kOwn:
      whole.object = kOwnObject;
      whole.offset = 0;
      return std::vector{whole};
    case ExtentForm::kInline:
      if (const Status status = check_extent(whole); !status.ok()) {
        return failure(status.with_context(fmt::format("entry {}", entry.index())));
      }
      return std::vector{whole};
    case ExtentForm::kList:
      break;
  }
  auto listed = listed_extents(record);
  if (!listed) {
    return failure(listed.error().with_context(fmt::format("entry {}", entry.index())));
  }
  return listed;
}

Status Manifest::check_extent(const Extent& extent) const {
  MR_ASSIGN_OR_RETURN(const ObjectRecord object, object_record(extent.object));
  if (extent.offset <= object.size && extent.stored_bytes <= object.size - extent.offset) return {};
  return wrong("object", extent.object, "an extent lies beyond its end").error();
}

Result<std::vector<Extent>> Manifest::listed_extents(const EntryRecord& record) const {
  const std::uint64_t count = header().bytes(ManifestSection::kExtents) / kExtentBytes;
  if (record.offset > count || record.object > count - record.offset) {
    return wrong("extent", record.offset, "there are not so many");
  }
  std::vector<Extent> extents;
  std::uint64_t left = record.size;
  for (std::uint64_t number = record.offset; number < record.offset + record.object; ++number) {
    MR_ASSIGN_OR_RETURN(const ByteView bytes, pages_->view(ManifestSection::kExtents,
                                                           number * kExtentBytes, kExtentBytes));
    MR_ASSIGN_OR_RETURN(const Extent extent, decode_extent(bytes));
    MR_RETURN_IF_ERROR(check_extent(extent));
    if (extent.logical_bytes > left) return wrong("extent", number, "its file ends before");
    left -= extent.logical_bytes;
    extents.push_back(extent);
  }
  if (left > 0) return wrong("extent", record.offset, "its file goes on behind the last");
  return extents;
}

}  // namespace millrace
