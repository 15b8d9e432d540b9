#include "dataset/manifest_writer.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/little_endian.h"
#include "cache/unit.h"
#include "dataset/manifest_content.h"

namespace millrace {
namespace {

constexpr std::size_t kQueueHeadBytes = 8;
constexpr std::size_t kQueueBufferBytes = 64 * kKiB;

Status bad_entry(std::string_view path, std::string_view why) {
  return {StatusCode::kInvalidArgument, fmt::format("entry '{}' {}", path, why)};
}

// What a directory that nobody described looks like.
NewEntry new_root() { return {.path = "", .kind = EntryKind::kDirectory, .mode = 0755}; }

Status check_new_file(const NewEntry& entry) {
  std::uint64_t logical_bytes = 0;
  for (const Extent& extent : entry.extents) {
    if (extent.codec != ExtentCodec::kNone || extent.stored_bytes != extent.logical_bytes ||
        extent.logical_bytes == 0 || extent.logical_bytes > entry.size - logical_bytes) {
      return bad_entry(entry.path, "has an extent that does not fit it");
    }
    logical_bytes += extent.logical_bytes;
    if (extent.object != kOwnObject) continue;
    if (entry.extents.size() > 1 || extent.offset != 0 || entry.hash.kind != HashKind::kEtag) {
      return bad_entry(entry.path, "cannot be an object without a record");
    }
  }
  if (logical_bytes != entry.size) {
    return bad_entry(entry.path,
                     fmt::format("has {} bytes, its extents have {}", entry.size, logical_bytes));
  }
  return {};
}

}  // namespace

Status check_new_entry(const NewEntry& entry) {
  if (const auto fault = entry_path_fault(entry.path)) {
    return bad_entry(entry.path, "has a path that no entry can have: " + *fault);
  }
  if (entry.mode && *entry.mode > 07777) return bad_entry(entry.path, "has no such mode");
  if (entry.kind == EntryKind::kFile) return check_new_file(entry);
  if (entry.size != 0 || !entry.extents.empty() || entry.hash.kind != HashKind::kNone) {
    return bad_entry(entry.path, "is no file and has content");
  }
  if (entry.kind == EntryKind::kSymlink &&
      (entry.symlink_target.empty() || entry.symlink_target.size() > kSymlinkTargetBytesMax ||
       entry.symlink_target.contains('\0'))) {
    return bad_entry(entry.path, "is a symlink to what no symlink can point to");
  }
  return {};
}

Result<std::unique_ptr<ManifestWriter>> ManifestWriter::create(const std::string& path,
                                                               const std::string& scratch,
                                                               std::string prefix,
                                                               const std::string& prefix_store) {
  if (prefix.size() > kManifestPrefixBytesMax) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("the prefix has {} bytes, at most {} are possible", prefix.size(),
                               kManifestPrefixBytesMax));
  }
  MR_ASSIGN_OR_RETURN(auto file, ManifestPageFile::create(path));
  std::unique_ptr<ManifestWriter> writer(
      new ManifestWriter(std::move(file), scratch, std::move(prefix)));
  MR_ASSIGN_OR_RETURN(writer->header_.prefix_store, writer->store_number(prefix_store));
  return writer;
}

ManifestWriter::ManifestWriter(std::unique_ptr<ManifestPageFile> file, const std::string& scratch,
                               std::string prefix)
    : file_(std::move(file)),
      directories_(scratch),
      slots_(scratch),
      names_(scratch),
      extents_(scratch),
      objects_(scratch),
      texts_(scratch),
      checksums_(scratch),
      queue_(scratch),
      queue_reader_(queue_, kQueueBufferBytes) {
  header_.prefix = std::move(prefix);
  begin_content_digest(content_);
}

Status ManifestWriter::append_u32(ManifestSpool& spool, std::uint32_t value) {
  std::array<std::byte, sizeof value> bytes;
  store_little_endian(bytes.data(), value);
  return spool.append(bytes);
}

Result<std::uint32_t> ManifestWriter::store_number(const std::string& url) {
  if (url.empty()) return 0;
  if (url.size() > kManifestStoreBytesMax) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("the URL of a store has {} bytes, at most {} are possible",
                               url.size(), kManifestStoreBytesMax));
  }
  std::vector<std::string>& stores = header_.stores;
  auto known = std::ranges::find(stores, url);
  if (known == stores.end()) {
    if (stores.size() == kManifestStoresMax) {
      return failure(StatusCode::kResourceExhausted,
                     fmt::format("the objects of a version lie in at most {} other stores",
                                 kManifestStoresMax));
    }
    known = stores.insert(known, url);
  }
  return static_cast<std::uint32_t>(known - stores.begin()) + 1;
}

Result<std::uint32_t> ManifestWriter::add_object(const NewObject& object) {
  const std::uint64_t number = objects_.size() / kObjectRecordBytes;
  if (!object.store.empty() && !object.foreign) {
    return failure(StatusCode::kInvalidArgument, fmt::format("object '{}' in {} is not foreign",
                                                             object.key.value(), object.store));
  }
  MR_ASSIGN_OR_RETURN(const std::uint32_t store, store_number(object.store));
  ObjectRecord record{.texts_offset = texts_.size(),
                      .key_bytes = static_cast<std::uint32_t>(object.key.value().size()),
                      .identity_bytes = static_cast<std::uint32_t>(object.identity.value().size()),
                      .size = object.size,
                      .store = store,
                      .foreign = object.foreign,
                      .first_checksum = {}};
  if (!object.checksums.empty()) {
    if (object.checksums.size() != unit_count(object.size)) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("object '{}' of {} bytes comes with {} checksums",
                                 object.key.value(), object.size, object.checksums.size()));
    }
    record.first_checksum = checksums_.size() / kUnitChecksumBytes;
  }
  std::array<std::byte, kObjectRecordBytes> bytes;
  encode_object(record, bytes.data());
  if (number >= kOwnObject || !decode_object(bytes)) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("object '{}' of {} bytes is more than a manifest can hold",
                               object.key.value(), object.size));
  }
  MR_RETURN_IF_ERROR(objects_.append(bytes));
  MR_RETURN_IF_ERROR(texts_.append(as_bytes(object.key.value())));
  MR_RETURN_IF_ERROR(texts_.append(as_bytes(object.identity.value())));
  MR_RETURN_IF_ERROR(checksums_.append(std::as_bytes(object.checksums)));
  header_.totals.stored_bytes += object.size;
  return static_cast<std::uint32_t>(number);
}

Status ManifestWriter::add(const NewEntry& entry) {
  MR_RETURN_IF_ERROR(check_new_entry(entry));
  if (header_.totals.entries() == 0 && !entry.path.empty()) MR_RETURN_IF_ERROR(write(new_root()));
  MR_RETURN_IF_ERROR(check_place(entry.path));
  if (entry.path.empty() && entry.kind != EntryKind::kDirectory) {
    return bad_entry(entry.path, "is the root and no directory");
  }
  return write(entry);
}

Status ManifestWriter::check_place(std::string_view path) {
  const std::uint64_t entries = header_.totals.entries();
  if (entries == kEntriesMax) {
    return {StatusCode::kResourceExhausted,
            fmt::format("a version has at most {} entries", kEntriesMax)};
  }
  if (entries == 0) return {};
  if (compare_entries(last_path_, path) >= 0) {
    return bad_entry(path, fmt::format("comes after '{}', which is not the order", last_path_));
  }
  return move_to_parent(path);
}

Status ManifestWriter::move_to_parent(std::string_view path) {
  const std::string_view parent = entry_parent(path);
  while (parent_ != parent) {
    if (queue_reader_.at_end()) {
      return bad_entry(path, fmt::format("has no directory: '{}' did not come", parent));
    }
    MR_RETURN_IF_ERROR(next_parent());
  }
  return {};
}

Status ManifestWriter::next_parent() {
  MR_RETURN_IF_ERROR(end_siblings());
  MR_ASSIGN_OR_RETURN(const ByteView head, queue_reader_.read(kQueueHeadBytes));
  parent_index_ = load_little_endian<std::uint32_t>(head.data());
  const auto path_bytes = load_little_endian<std::uint32_t>(head.data() + 4);
  MR_ASSIGN_OR_RETURN(const ByteView path, queue_reader_.read(path_bytes));
  parent_ = as_text(path);
  return begin_children();
}

// The next entry is the first child of the next directory, if it has any.
Status ManifestWriter::begin_children() {
  std::array<std::byte, kDirectoryBytes> bytes;
  encode_directory({.first_child = static_cast<EntryIndex>(header_.totals.entries()),
                    .first_name = names_.size()},
                   bytes.data());
  return directories_.append(bytes);
}

Status ManifestWriter::end_siblings() {
  std::ranges::sort(siblings_);
  for (const NameSlot& slot : siblings_) {
    std::array<std::byte, kNameSlotBytes> bytes;
    store_little_endian(bytes.data(), slot.hash);
    store_little_endian(bytes.data() + 4, slot.child);
    MR_RETURN_IF_ERROR(slots_.append(bytes));
  }
  siblings_.clear();
  return {};
}

Status ManifestWriter::write(const NewEntry& entry) {
  const auto index = static_cast<EntryIndex>(header_.totals.entries());
  const std::string_view name = entry_base(entry.path);
  EntryRecord record{.name_offset = names_.size(),
                     .name_bytes = static_cast<std::uint8_t>(name.size()),
                     .kind = entry.kind,
                     .mode = entry.mode,
                     .parent = parent_index_,
                     .mtime_ns = entry.mtime_ns,
                     .size = entry.size,
                     .hash = entry.hash};
  MR_RETURN_IF_ERROR(place_content(entry, record));
  MR_RETURN_IF_ERROR(names_.append(as_bytes(name)));
  std::array<std::byte, kEntryBytes> bytes;
  encode_entry(record, bytes.data());
  MR_RETURN_IF_ERROR(file_->append(bytes));
  if (entry.kind == EntryKind::kDirectory) {
    MR_RETURN_IF_ERROR(append_u32(queue_, index));
    MR_RETURN_IF_ERROR(append_u32(queue_, static_cast<std::uint32_t>(entry.path.size())));
    MR_RETURN_IF_ERROR(queue_.append(as_bytes(entry.path)));
  }
  if (index == 0) {
    MR_RETURN_IF_ERROR(slots_.append(std::array<std::byte, kNameSlotBytes>{}));
  } else {
    siblings_.push_back({.hash = name_hash(name), .child = index});
  }
  add_content_digest(content_, {.path = entry.path,
                                .kind = entry.kind,
                                .mode = entry.mode,
                                .size = record.size,
                                .hash = entry.hash,
                                .symlink_target = entry.symlink_target});
  last_path_ = entry.path;
  count(entry);
  return {};
}

Status ManifestWriter::place_content(const NewEntry& entry, EntryRecord& record) {
  if (entry.kind == EntryKind::kDirectory) {
    record.object = static_cast<std::uint32_t>(header_.totals.directories);
    return {};
  }
  if (entry.kind == EntryKind::kSymlink) {
    record.size = entry.symlink_target.size();
    record.offset = texts_.size();
    return texts_.append(as_bytes(entry.symlink_target));
  }
  if (entry.extents.empty()) return {};
  for (const Extent& extent : entry.extents)
    MR_RETURN_IF_ERROR(check_extent(extent, entry.path));
  if (entry.extents.size() == 1) {
    const bool own = entry.extents[0].object == kOwnObject;
    record.form = own ? ExtentForm::kOwn : ExtentForm::kInline;
    record.object = own ? 0 : entry.extents[0].object;
    record.offset = entry.extents[0].offset;
    return {};
  }
  record.form = ExtentForm::kList;
  record.object = static_cast<std::uint32_t>(entry.extents.size());
  record.offset = extents_.size() / kExtentBytes;
  for (const Extent& extent : entry.extents) {
    std::array<std::byte, kExtentBytes> bytes;
    encode_extent(extent, bytes.data());
    MR_RETURN_IF_ERROR(extents_.append(bytes));
  }
  return {};
}

Status ManifestWriter::check_extent(const Extent& extent, std::string_view path) {
  if (extent.object == kOwnObject) return {};
  if (extent.object >= objects_.size() / kObjectRecordBytes) {
    return bad_entry(path, fmt::format("lies in object {}, which did not come", extent.object));
  }
  if (!object_size_ || object_size_->first != extent.object) {
    std::array<std::byte, kObjectRecordBytes> bytes;
    MR_RETURN_IF_ERROR(objects_.read_at(extent.object * kObjectRecordBytes, bytes));
    MR_ASSIGN_OR_RETURN(const ObjectRecord object, decode_object(bytes));
    object_size_ = {extent.object, object.size};
  }
  const std::uint64_t size = object_size_->second;
  if (extent.offset <= size && extent.stored_bytes <= size - extent.offset) return {};
  return bad_entry(path,
                   fmt::format("reaches beyond the {} bytes of object {}", size, extent.object));
}

void ManifestWriter::count(const NewEntry& entry) {
  ManifestTotals& totals = header_.totals;
  switch (entry.kind) {
    case EntryKind::kDirectory:
      ++totals.directories;
      return;
    case EntryKind::kSymlink:
      ++totals.symlinks;
      return;
    case EntryKind::kFile:
      ++totals.files;
      totals.logical_bytes += entry.size;
      if (!entry.extents.empty() && entry.extents[0].object == kOwnObject) {
        totals.stored_bytes += entry.size;
      }
      return;
  }
}

Result<ManifestSummary> ManifestWriter::finish() {
  if (header_.totals.entries() == 0) MR_RETURN_IF_ERROR(write(new_root()));
  while (!queue_reader_.at_end())
    MR_RETURN_IF_ERROR(next_parent());
  MR_RETURN_IF_ERROR(end_siblings());
  MR_RETURN_IF_ERROR(begin_children());
  MR_RETURN_IF_ERROR(file_->end_section());

  // In the order of ManifestSection, whose first is written already.
  const ManifestSpool* const spools[] = {&directories_, &slots_, &names_,    &extents_,
                                         &objects_,     &texts_, &checksums_};
  header_.section_bytes[0] = header_.totals.entries() * kEntryBytes;
  for (std::size_t i = 0; i < std::size(spools); ++i) {
    header_.section_bytes[i + 1] = spools[i]->size();
    MR_RETURN_IF_ERROR(file_->append(*spools[i]));
    MR_RETURN_IF_ERROR(file_->end_section());
  }
  header_.lay_out();
  std::vector<std::uint32_t> table = file_->checksums();
  table.resize((header_.pages * kManifestPageBytes - header_.offset(ManifestSection::kPageTable)) /
               kPageChecksumBytes);
  const ByteView table_bytes = std::as_bytes(std::span(table));
  header_.page_table_checksum = crc32c(table_bytes);
  MR_RETURN_IF_ERROR(file_->append(table_bytes));
  MR_RETURN_IF_ERROR(file_->end_section());
  header_.content_digest = content_.finish();
  MR_ASSIGN_OR_RETURN(const Sha256Digest layout, file_->commit(encode_manifest_header(header_)));
  return ManifestSummary{.content_digest = header_.content_digest,
                         .layout_digest = layout,
                         .file_bytes = header_.file_bytes(),
                         .totals = header_.totals};
}

}  // namespace millrace
